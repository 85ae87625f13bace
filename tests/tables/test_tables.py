"""Tables show the records' numbers beside the paper's, and are LaTeX that compiles."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments import scales
from experiments.records import RESULTS, ROOT
from tables import common, disturbance, extension, html, n_hat, summary

TABLES = {
    "disturbance": "llama2-7b",
    "extension": "smollm2",
    "n_hat": "smollm2",
    "short_text": "smollm2",
    "whole_texts": "smollm2",
}  # of another scale than the default


def body(tex: str) -> list[list[str]]:
    """The rows between \\midrule and \\bottomrule, cells stripped of bold and small print."""
    rows = tex[tex.index("\\midrule") + 8 : tex.index("\\bottomrule")].strip().split("\\\\")
    plain = [re.sub(r"\s*\{\\scriptsize.*?\}", "", row.replace("\\textbf", "").strip()) for row in rows if row.strip()]
    return [[cell.strip(" {}") for cell in row.split("&")] for row in plain]


def test_disturbance_stands_beside_what_the_paper_published():
    rows = {row[0]: row[1:] for row in body(disturbance.build(RESULTS, "llama2-7b"))}
    paper = {"PI": ("24.08", "33.67"), "YaRN": ("25.55", "35.44"), "DPRoPE ($t=0$)": ("6.71", "22.92")}
    for method, (at_8k, at_16k) in paper.items():
        assert (rows[method][0], rows[method][4]) == (at_8k, at_16k)
        for published, recomputed in ((at_8k, rows[method][1]), (at_16k, rows[method][5])):
            assert float(recomputed) == pytest.approx(float(published), rel=0.004)
    assert rows["PI"][2:4] == ["24.06", "190.78"] and rows["PI"][6:8] == ["33.62", "210.38"]
    assert rows["Original"][0] == "--"


def test_another_geometry_shows_no_published_number():
    tex = disturbance.build(RESULTS, "smollm2")
    assert "paper" not in tex.split("\\midrule")[0].split("\\toprule")[1] and "24.08" not in tex


def test_extension_shows_the_records_and_marks_the_best(tmp_path):
    """Hand-made records: two methods, one book, two blocks a range."""
    directory = tmp_path / "smollm2" / "extension"
    directory.mkdir(parents=True)
    for method, losses in (("original", [1, 1, 3, 5, 7, 7]), ("yarn", [1.5, 1.5, 2, 2, 3, 3])):
        spans = [(0, 8192), (8192, 12288), (12288, 16384)]
        ranges = [
            {"start": a, "end": b, "tokens": 256, "mean": float(np.mean(pair)), "low": min(pair), "high": max(pair)}
            for (a, b), pair in zip(spans, np.reshape(losses, (3, 2)).tolist())
        ]
        record = {
            "method": method,
            "factor": 2.0,
            "options": {},
            "data": {"A Book": "hash"},
            "length": 16384,
            "ranges": ranges,
            "block": 4096,
            "blocks": {"A Book": losses},
        }
        (directory / f"{method}.json").write_text(json.dumps(record))
    shutil.copytree(RESULTS / "smollm2" / "disturbance", tmp_path / "smollm2" / "disturbance")
    tex = extension.build(tmp_path, "smollm2")
    rows = body(tex)
    assert [row[0] for row in rows] == ["Original", "YaRN"]
    assert [row[2:5] for row in rows] == [["1.000", "4.000", "7.000"], ["1.500", "2.000", "3.000"]]
    assert rows[0][5] == "3.000" and rows[1][5] == "--"  # blocks beyond 8192: mean of (1, 3, 4, 4)
    assert re.findall(r"\\textbf\{(\d\.\d+)", tex) == ["1.000", "2.000", "3.000"]


def test_extension_has_a_table_for_each_factor(tmp_path):
    shutil.copytree(RESULTS / "smollm2" / "disturbance", tmp_path / "smollm2" / "disturbance")
    shutil.copytree(RESULTS / "smollm2" / "extension", tmp_path / "smollm2" / "extension")
    for file in (tmp_path / "smollm2" / "extension").glob("*_s=4*"):
        file.unlink()
    before = extension.build(tmp_path, "smollm2")
    for run in extension.comparison(tmp_path, "smollm2")[:4]:
        longer = run | {"factor": 4, "length": 32768}
        longer["ranges"] = [row | {"mean": row["mean"] + 1, "end": 2 * row["end"]} for row in run["ranges"]]
        (tmp_path / "smollm2" / "extension" / f"{run['method']}_s=4.json").write_text(json.dumps(longer))
    tex = extension.build(tmp_path, "smollm2")
    first, second = (part + "\\end{table*}\n" for part in tex.split("\\end{table*}\n")[:2])
    assert first == before and "from 8k to 32k without training" in second and "24k" in second
    assert [row[0] for row in body(second)] == ["Original", "PI", "NTK-aware", "YaRN"]
    assert [row[1] for row in body(second)] == ["398.98", "1.46", "76.72", "3.70"]  # the disturbance at that factor
    assert html.tables(tex).count("<table") == html.tables(tex).count("</table>") == 2


def test_every_method_of_the_comparison_is_recorded_on_the_same_text():
    runs = extension.comparison(RESULTS, "smollm2")
    assert [(run["method"], run["options"]) for run in runs] == scales.get("smollm2").comparison(2)
    assert len({json.dumps(run["data"]) for run in runs}) == 1
    for run in runs:
        blocks = np.array(list(run["blocks"].values()))
        assert run["ranges"][2]["mean"] == pytest.approx(blocks[:, 96:].mean())
        assert not run["environment"]["commit"].endswith("with changes")


def test_settings_beyond_the_comparison_stand_in_the_table_alone(tmp_path):
    shutil.copytree(RESULTS / "smollm2", tmp_path / "smollm2")
    runs = extension.comparison(tmp_path, "smollm2")
    sharper = dict(runs[-1], options=runs[-1]["options"] | {"attention_factor": 1.5})
    (tmp_path / "smollm2" / "extension" / "another.json").write_text(json.dumps(sharper))
    assert extension.comparison(tmp_path, "smollm2") == runs
    lines = [row for row in body(extension.build(tmp_path, "smollm2")) if "1.50" in row[0]]
    (plain,) = [row for row in body(extension.build(tmp_path, "smollm2")) if row[0] == common.method_name(runs[-1])]
    assert [row[1:] for row in lines] == [plain[1:]]  # the same pairs, so the same disturbance


def test_the_disturbance_of_a_setting_without_a_record_is_that_of_its_pairs():
    runs = extension.comparison(RESULTS, "smollm2")
    recorded = extension.disturbances(RESULTS, "smollm2", runs)
    dprope, interpolated = (next(run for run in runs if run["method"] == method) for method in ("dprope", "pi"))
    settings = [
        dprope | {"options": {"n_hat": 64}},
        dprope | {"options": {"n_hat": 0, "attention_factor": 1.1}},
        dprope | {"options": {"intervals": 360}},
        dprope | {"method": "clex"},
    ]
    wanted = [recorded[runs.index(interpolated)], recorded[0], recorded[runs.index(dprope)], None]
    assert runs[0]["method"] == "original"
    assert extension.disturbances(RESULTS, "smollm2", settings) == pytest.approx(wanted)


def test_fine_tuned_models_stand_below_and_a_selection_stands_once(tmp_path):
    folder = tmp_path / "smollm2" / "extension"
    shutil.copytree(RESULTS / "smollm2", tmp_path / "smollm2")
    for file in folder.glob("*_seed=*.json"):
        file.unlink()
    before = body(extension.build(tmp_path, "smollm2"))
    runs = extension.same_text(tmp_path, "smollm2")
    training = {"identity": "x", "seed": 0, "steps": 7, "length": 4096}
    for method, gain in (("yarn", 1), ("pi", 3)):  # PI's fine-tune starts from YaRN's losses
        yarn = next(run for run in runs if (run["method"], run["options"]) == ("yarn", {}))
        tuned = yarn | {"method": method, "training": training}
        tuned["blocks"] = {title: [loss - gain for loss in losses] for title, losses in yarn["blocks"].items()}
        tuned["ranges"] = [row | {"mean": row["mean"] - gain} for row in yarn["ranges"]]
        (folder / f"{method}_tuned.json").write_text(json.dumps(tuned))
    twin = runs[-1] | {"method": "dprope", "options": {"n_hat": 62}, "same_selection_as": "another"}
    (folder / "twin.json").write_text(json.dumps(twin))
    assert extension.same_text(tmp_path, "smollm2") == runs
    tex = extension.build(tmp_path, "smollm2")
    assert body(tex)[: len(before)] == before and len(body(tex)) == len(before) + 2
    pi, yarn = body(tex)[-2:]
    assert (pi[0], pi[5], yarn[0], yarn[5]) == ("PI, fine-tuned", "$-$2.000", "YaRN, fine-tuned", "--")
    bold = [line.count("textbf") for line in tex.splitlines() if "fine-tuned" in line and "&" in line]
    assert bold == [3, 0]  # the best of the fine-tuned, though all of them are better than what was not trained
    assert "7 steps on sequences of 4,096 tokens" in tex and "without training" in tex
    assert "fine-tuned" not in " ".join(common.method_name(run) for run in extension.comparison(tmp_path, "smollm2"))


def test_n_hat_by_every_evaluation(tmp_path):
    """Hand-made records of three n̂, one of them measured under another name."""
    record = {"method": "dprope", "factor": 2, "data": {}, "environment": {}}

    def write(experiment, n_hat, **made):
        file = tmp_path / "smollm2" / experiment / f"{n_hat}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(record | {"experiment": experiment, "options": {"n_hat": n_hat}} | made))

    ranges = [{"start": 0}, {"start": 8192}]
    write("extension", 24, block=4096, blocks={"A": [9, 9, 3, 5]}, ranges=ranges)
    write("extension", 8, block=4096, blocks={"A": [9, 9, 2, 2]}, ranges=ranges)
    write("extension", 36, block=4096, blocks={"A": [9, 9, 5, 5]}, ranges=ranges, same_selection_as="another")
    for count, found in ((24, (1, 0.5)), (8, (0.5, 0))):
        rows = [{"length": 4096 * i, "n": 2, "mean": mean} for i, mean in enumerate(found, 1)]
        write("passkey", count, scores={"by_length": rows})
    tex = n_hat.build(tmp_path, "smollm2")
    rows = body(tex)
    assert [row[:2] for row in rows] == [["36", "5.000"], ["24", "4.000"], ["8", "2.000"]]
    assert [row[3] for row in rows] == ["no record", "75", "25"]  # three and one of four
    assert all(row[2] == row[4] == row[5] == "no record" for row in rows)
    assert re.findall(r"\\textbf\{([\d.]+)", tex) == ["75", "2.000"]
    assert body(n_hat.build(tmp_path, "tiny")) == [["--"] + ["no record"] * 5]


def test_summary_reads_like_the_tables():
    text = summary.build(RESULTS)
    assert "PI 24.08 | 24.08" in text and "yarn_s=2" in text


def test_committed_tables_are_what_the_records_give():
    for file in (ROOT / "tables").glob("*.tex"):
        if file.stem != "audit":
            module = importlib.import_module(f"tables.{file.stem}")
            assert file.read_text() == module.build(RESULTS, TABLES.get(file.stem, "tiny")), file.name


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs a LaTeX installation")
def test_tables_compile(tmp_path):
    inputs = "".join(rf"\input{{{file.as_posix()}}}" for file in sorted((ROOT / "tables").glob("*.tex")))
    document = (
        r"\documentclass[10pt,twocolumn]{article}\usepackage[a4paper,margin=2cm]{geometry}"
        r"\usepackage[utf8]{inputenc}\usepackage{booktabs,amsmath}\begin{document}" + inputs + r"\end{document}"
    )
    (tmp_path / "all.tex").write_text(document)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull \\hbox" not in done.stdout


def test_rendering_needs_no_torch():
    names = [f"{kind}.{f.stem}" for kind in ("tables", "figures") for f in sorted(Path(ROOT, kind).glob("[a-z]*.py"))]
    code = f"import sys, {', '.join(names)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
