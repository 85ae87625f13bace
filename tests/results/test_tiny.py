"""What the page of tiny says is what the records hold."""

from experiments import records, scales
from experiments.records import RESULTS
from tables import longbench, openllm, perplexity, ruler
from tables.benchmarks import comparable, over_seeds
from tests.readme import cell, page

PAGE, PROSE = page("results/tiny/README.md")

# Columns of the tables of tiny's fine-tunes: experiment, its scores, and which of them at L' = s·1k tokens.
FINE_TUNED = (
    ("longbench_e", longbench.scores, "Avg.>$L$"),
    ("open_llm", openllm.scores, "Avg."),
    ("ruler", ruler.scores, "{factor}k"),
    ("perplexity", perplexity.scores, "1k"),
    ("perplexity", perplexity.scores, "{factor}k"),
)


def fine_tune_rows(factor: int) -> list[str]:
    """The lines of the page's table for tiny at s = `factor`: means over seeds; of passkeys, all seeds together."""
    lines = []
    names = {"original": "original", "pi": "PI", "yarn": "YaRN", "clex": "CLEX", "dprope": "DPRoPE"}
    for method, options in [("original", {}), *scales.get("tiny").trained(factor)]:

        def group(experiment: str, method=method, options=options) -> list[dict]:
            (found,) = [
                group
                for group in comparable(RESULTS, "tiny", experiment, method != "original")
                if (group[0]["method"], group[0]["options"], group[0]["factor"]) == (method, options, factor)
            ]
            return found

        name = names[method]
        if method == "dprope":
            name += f", n̂ = {options['n_hat']}" if options else ", t = 0"
        cells = [
            cell(over_seeds([scores(run) for run in group(experiment)])[column.format(factor=factor)], 1)
            for experiment, scores, column in FINE_TUNED
        ]
        for length in (1024, 1024 * factor):
            rows = [row for run in group("passkey") for row in run["scores"]["by_length"] if row["length"] == length]
            cells.append(f"{round(sum(row['mean'] * row['n'] for row in rows))}/{sum(row['n'] for row in rows)}")
        lines.append(f"| {' | '.join([name, *cells])} |")
    return lines


def test_fine_tune_tables():
    for factor in (2, 4):
        lines = fine_tune_rows(factor)
        assert len(lines) == 6 and set(lines) <= set(PAGE.splitlines())


def test_times():
    (record,) = records.load(RESULTS, "tiny", "time_cost")
    for row in record["scores"]:
        if row["run"] != "pi_s=2":
            assert cell(row | {"mean": row["relative_to_pi"]}, 3) in PROSE
            assert f"A training step of {record['length']} tokens" in PROSE and f"the {row['rounds']} rounds" in PROSE


def temperature_rows(factor: int) -> list[str]:
    """The lines of the page's table of YaRN's temperature: perplexity and passkeys at L', untrained and fine-tuned."""
    preset, length, lines = scales.get("tiny"), 1024 * factor, []
    n_hat = preset.n_hat[factor]
    without, with_it = preset.sharpened(factor)
    names = ("YaRN", "YaRN without its temperature", f"DPRoPE, n̂ = {n_hat}", f"DPRoPE, n̂ = {n_hat}, with it")
    for name, setting in zip(names, [("yarn", {}), without, ("dprope", {"n_hat": n_hat}), with_it]):
        cells = []
        for trained in (False, True):
            perplexities, passkeys = (
                next(
                    group
                    for group in comparable(RESULTS, "tiny", experiment, trained)
                    if (group[0]["method"], group[0]["options"], group[0]["factor"]) == (*setting, factor)
                )
                for experiment in ("perplexity", "passkey")
            )
            cells.append(cell(over_seeds([perplexity.scores(run) for run in perplexities])[f"{factor}k"], 1))
            rows = [row for run in passkeys for row in run["scores"]["by_length"] if row["length"] == length]
            cells.append(f"{round(sum(row['mean'] * row['n'] for row in rows))}/{sum(row['n'] for row in rows)}")
        lines.append(f"| {' | '.join([name, *cells])} |")
    return lines


def test_temperature_tables():
    for factor in (2, 4):
        assert set(temperature_rows(factor)) <= set(PAGE.splitlines())
