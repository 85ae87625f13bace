"""The report says of each claim what the records say, and shows the tables' own cells."""

import json
import re
import shutil

import pytest

from experiments import scales
from experiments.records import RESULTS, ROOT
from tables import html, reasons, report
from tables.claims import CLAIMS, Claim
from tables.comparisons import EXACT, KIND, NONE, NOT, difference

TEXTS = {claim.text: claim for claim in CLAIMS}


def by_start(start: str) -> Claim:
    (claim,) = [claim for text, claim in TEXTS.items() if text.startswith(start)]
    return claim


def score(mean, width=1.0):
    return {"mean": mean, "low": mean - width, "high": mean + width, "n": 5}


def write(folder, method, mean, width=1.0, seed=None, factor=2, options=None):
    """A RULER record."""
    lengths = {"1024": score(mean, width), "2048": score(mean, width)}
    made = {"method": method, "factor": factor, "options": options or {}, "samples": 5}
    made["scores"] = {"lengths": lengths, "average": score(mean, width)}
    if seed is not None:
        made["training"] = {"seed": seed}
    save(folder / "smollm2" / "ruler", made)


def open_llm(folder, options, mean, **more):
    """A record of DPRoPE with these options."""
    made = {"method": "dprope", "factor": 2, "options": options, "scores": {"average": score(mean)}} | more
    save(folder / "smollm2" / "open_llm", made)


def save(folder, made):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{len(list(folder.iterdir()))}.json").write_text(json.dumps(made))


def test_no_verdict_without_a_record(tmp_path):
    shutil.copytree(RESULTS / "llama2-7b", tmp_path / "llama2-7b")
    for claim in CLAIMS:
        for finding in claim.findings(tmp_path):
            assert (finding.verdict == NONE) == (finding.scale == "LLaMA2")
    assert by_start("The disturbance of").findings(tmp_path)[0].verdict == EXACT


@pytest.mark.parametrize(("ours", "width", "verdict"), [(60, 1, KIND), (52, 5, NOT), (40, 1, NOT)])
def test_a_difference_within_the_noise_is_no_reproduction(tmp_path, ours, width, verdict):
    for method, mean in (("pi", 45), ("yarn", 50), ("dprope", ours)):
        write(tmp_path, method, mean, width)
    (finding,) = by_start("Best on RULER").findings(tmp_path)
    assert finding.verdict == verdict and f"YaRN (s=2) {50:.2f}" in finding.measured.replace("YaRN 50", "YaRN (s=2) 50")


def test_fine_tuned_records_come_before_untrained_ones_and_are_paired_by_seed(tmp_path):
    write(tmp_path, "pi", 0)
    write(tmp_path, "dprope", 99)
    for seed, base in enumerate((10, 30, 50)):  # seeds differ much, the methods within a seed little
        write(tmp_path, "pi", base, seed=seed)
        write(tmp_path, "dprope", base + 2 + seed / 10, seed=seed)
    (finding,) = by_start("Best on RULER").findings(tmp_path)
    assert (
        finding.measured.startswith("fine-tuned")
        and finding.verdict == KIND
        and "+2.10 [+1.85, +2.35]" in finding.measured
    )


def test_intervals_over_samples_combine_as_if_independent():
    gap = difference({None: {"x": score(5, 3)}}, {None: {"x": score(1, 4)}}, "x")
    assert gap == {"mean": 4, "low": -1, "high": 9}


def test_seeds_are_paired_by_their_number():
    ours = {seed: {"x": score(10 * seed + 1)} for seed in (0, 2, 3)}
    rival = {seed: {"x": score(10 * seed)} for seed in (3, 2, 1, 0)}
    assert difference(ours, rival, "x") == {"mean": 1, "low": 1, "high": 1}


@pytest.mark.parametrize(
    ("original", "near", "ours", "verdict"),
    [
        (0, 60, (58, 57), KIND),
        (58, 60, (59, 57), NOT),  # the original keeps its score
        (30, 60, (25, 35), NOT),  # ours collapses as well
        (0, 8, (0.5, 0.4), NOT),  # ours has little to lose, and loses it
    ],
)
def test_what_is_lost_beyond_the_training_length(tmp_path, original, near, ours, verdict):
    def run(method, far, near=60, **more):
        lengths = {"8192": score(near, 2), "16384": score(far, 2)}
        made = {"method": method, "factor": 2, "options": {}, "scores": {"lengths": lengths, "average": score(1)}}
        save(tmp_path / "smollm2" / "ruler", made | more)

    run("original", original)
    run("dprope", 0)  # without training: there are fine-tuned ones
    run("dprope", 0, options={"n_hat": 28}, training={"seed": 0})  # another selection
    for seed, far in enumerate(ours):
        run("dprope", far, near, training={"seed": seed})
    (finding,) = by_start("Without extension").findings(tmp_path)
    assert finding.verdict == verdict
    assert f"Original 60.0 at 8k and {original:.1f} at 16k" in finding.measured
    assert f"(fine-tuned, 2 seeds) {near:.1f} at 8k and {sum(ours) / 2:.1f} at 16k" in finding.measured


def test_what_is_lost_where_another_selection_alone_was_fine_tuned(tmp_path):
    for method, options, far, more in (
        ("original", {}, 0, {}),
        ("dprope", {}, 58, {}),
        ("dprope", {"n_hat": 28}, 1, {"training": {"seed": 0}}),
    ):
        lengths = {"8192": score(60), "16384": score(far)}
        made = {"method": method, "factor": 2, "options": options, "scores": {"lengths": lengths, "average": score(1)}}
        save(tmp_path / "smollm2" / "ruler", made | more)
    (finding,) = by_start("Without extension").findings(tmp_path)
    assert finding.verdict == KIND and "(without training) 60.0 at 8k and 58.0 at 16k" in finding.measured


@pytest.mark.parametrize(("low", "verdict"), [(0.1, KIND), (-0.1, NOT)])
def test_the_central_claim_over_selections_wants_both_correlations_positive(tmp_path, low, verdict):
    rank = {"mean": 0.5, "low": low, "high": 0.8, "n": 2}
    rows = [{"interpolated_pairs": [1] * count, "beyond": score(count)} for count in (3, 2)]
    made = {"factor": 2, "scores": rows, "spearman": {"released": rank | {"low": 0.2}, "equation": rank}}
    save(tmp_path / "smollm2" / "selections", made)
    (finding,) = by_start("The same, over dozens").findings(tmp_path)
    assert finding.verdict == verdict and "4 dimensions" in finding.measured


@pytest.mark.parametrize(("least", "verdict"), [(30, KIND), (49, NOT)])
def test_an_ablation_is_compared_with_its_largest_value(tmp_path, least, verdict):
    for n_hat, mean in ((48, 50), (40, 51), (28, least)):
        open_llm(tmp_path, {"n_hat": n_hat}, mean)
    (finding,) = by_start("n̂ has little effect").findings(tmp_path)
    assert (finding.verdict == KIND) == (verdict == NOT)
    assert "against n̂ = 48" in finding.measured and f"28: {least - 50:+.2f} [" in finding.measured
    assert by_start("b does not").findings(tmp_path)[0].verdict == NONE


def test_an_ablation_of_which_one_value_was_fine_tuned_is_read_without_training(tmp_path):
    for n_hat in (48, 28):
        open_llm(tmp_path, {"n_hat": n_hat}, 50)
    open_llm(tmp_path, {"n_hat": 28}, 10, training={"seed": 0})
    (finding,) = by_start("n̂ has little effect").findings(tmp_path)
    assert finding.verdict == KIND and "28: +0.00 [" in finding.measured


def test_the_number_of_intervals_is_compared_with_the_papers(tmp_path):
    for options, mean in (({"intervals": 90}, 50), ({}, 51), ({"intervals": 720}, 60)):
        open_llm(tmp_path, options, mean)
    (finding,) = by_start("b does not").findings(tmp_path)
    assert finding.verdict == NOT and "against b = 360: 90: -1.00 [" in finding.measured


def test_cells_become_html():
    assert html.text(r"\textbf{1.0 {\scriptsize[0.5, 1.5]}}") == "<b>1.0 <small>[0.5, 1.5]</small></b>"
    assert html.text(r"DPRoPE ($\hat n=20$), 95\,\% \& a\_b <") == "DPRoPE (n̂=20), 95 % &amp; a_b &lt;"
    with pytest.raises(ValueError, match="unbalanced"):
        html.text(r"\textbf{1")


@pytest.mark.parametrize("file", sorted((ROOT / "tables").glob("*.tex")), ids=lambda file: file.stem)
def test_every_number_of_every_table_reaches_the_page(file):
    tex = file.read_text()
    body = tex[tex.index("\\toprule") : tex.index("\\bottomrule")]
    page = html.table(tex)
    wanted = re.findall(r"\d+\.\d+", body)
    assert re.findall(r"\d+\.\d+", page.split("</caption>")[1]) == wanted and wanted
    assert "\\" not in page and "$" not in page


def test_the_page_needs_nothing_else():
    page = report.build(RESULTS, ROOT / "tables", ROOT / "figures")
    assert not re.findall(r"(?:src|href)='(?!data:)[^']{0,40}", page)
    assert page.count("<figure>") == len(list((ROOT / "figures").glob("*.png")))
    for claim in CLAIMS:
        assert claim.text in page


def test_why_methods_fail_is_read_from_the_records(tmp_path):
    heads = {"heads": [{}], "own": score(19, 1), "scaled": score(29, 1)}
    save(tmp_path / "tiny" / "previous_token", {"method": "pi", "factor": 2, "options": {}, "scores": heads})
    settings = [("yarn", {}), ("dprope", {"n_hat": 20}), *scales.get("tiny").sharpened(2)]
    for index, (method, options) in enumerate(settings):
        rows = [{"length": n, "mean": 0.1 * index, "low": 0, "high": 1, "n": 10} for n in (1024, 2048)]
        made = {"method": method, "factor": 2, "options": options, "scores": {"by_length": rows}}
        save(tmp_path / "tiny" / "passkey", made)
    (_, shares), (_, found) = reasons.sentences(tmp_path)
    assert shares.endswith("PI 19 % | 29 %.")
    assert found.endswith(
        "YaRN 0 of 10; YaRN, attention × 1.00 2 of 10; DPRoPE (n̂=20) 1 of 10; DPRoPE (n̂=20), attention × 1.07 3 of 10."
    )
