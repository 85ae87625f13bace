"""The paper's claims, each beside what the records say of it, and a verdict that follows from them alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from scipy import stats

from eval.intervals import accuracy_interval
from experiments import records, scales
from tables import common, longbench, openllm, perplexity, ruler
from tables import extension as extension_table
from tables.benchmarks import Scores, tokens
from tables.comparisons import (
    EXACT,
    KIND,
    NONE,
    NOT,
    Finding,
    ablation,
    alike,
    better,
    beyond,
    called,
    extended,
    last,
    newest,
)

_LLAMA2 = "the paper's models and 8 A100: `make train SCALE=llama2-7b`, then the experiment with --model"


@dataclass(frozen=True)
class Claim:
    """A claim, where the paper makes it, and what tests it."""

    text: str
    where: str
    test: Callable[[Path], Iterator[Finding]]

    def findings(self, results: Path) -> list[Finding]:
        """At every scale that has records; where none has, what it would take."""
        found = list(self.test(results))
        return found or [Finding("LLaMA2", f"no record; it takes {_LLAMA2}", NONE)]


def _disturbance(results: Path) -> Iterator[Finding]:
    published = common.paper("disturbance").set_index(["method", "factor"])["disturbance_e3"]
    lines, worst = [], 0.0
    for run in records.load(results, "llama2-7b", "disturbance"):
        for row in run["scores"]:
            value = published.get((row["method"], run["factor"]))
            if row["precision"] == "float32" and value is not None and not row["options"]:
                found = 1e3 * row["average"]
                worst = max(worst, abs(found / value - 1))
                lines.append(f"{common.METHOD_NAMES[row['method']]} s = {run['factor']:g}: {value:.2f} | {found:.2f}")
    verdict = EXACT if worst < 0.005 else NOT
    yield Finding("llama2-7b", f"published | recomputed: {'; '.join(lines)}. Largest deviation {worst:.2%}.", verdict)


def _least_disturbance(results: Path) -> Iterator[Finding]:
    for scale, preset in scales.SCALES.items():
        lines, least = [], True
        for run in _some(results, scale, "disturbance"):
            rows = [row for row in run["scores"] if (row["precision"], row["convention"]) == ("float64", "released")]
            ours = next(row["average"] for row in rows if row["method"] == "dprope" and not row["options"])
            rival = min((row for row in rows if row["method"] in ("pi", "ntk", "yarn")), key=_average)
            least &= ours <= rival["average"]
            lines.append(
                f"s = {run['factor']:g}: {1e3 * ours:.2f} against {1e3 * rival['average']:.2f} "
                f"({common.METHOD_NAMES[rival['method']]})"
            )
        if lines:
            same = preset.geometry == scales.get("llama2-7b").geometry  # all that the disturbance depends on
            verdict = (EXACT if same else KIND) if least else NOT
            yield Finding(scale, f"10⁻³ nat, DPRoPE at t = 0 against the least rival: {'; '.join(lines)}.", verdict)


def _average(row: dict) -> float:
    return row["average"]


def _passkey(results: Path) -> Iterator[Finding]:
    for scale, preset in scales.SCALES.items():
        lines, all_found = [], True
        for group in newest(results, scale, "passkey", "dprope"):
            factor, options = group[0]["factor"], group[0]["options"]
            if ("dprope", options) not in preset.comparison(factor):
                continue
            longest = preset.geometry.context_length * factor
            within = [row for run in group for row in run["scores"]["by_length"] if row["length"] <= longest]
            asked = sum(row["n"] for row in within)
            right = round(sum(row["mean"] * row["n"] for row in within))
            all_found &= right == asked
            share = accuracy_interval([1.0] * right + [0.0] * (asked - right))
            span = f"[{100 * share['low']:.0f}, {100 * share['high']:.0f}] %"
            lines.append(f"s = {factor:g}, {called(group)}: {right} of {asked} {span}")
        if lines:
            yield Finding(scale, f"passkeys found within L' = s·L: {'; '.join(lines)}.", KIND if all_found else NOT)


def _collapse(results: Path) -> Iterator[Finding]:
    yield from beyond("perplexity", perplexity.scores, sign=-1)(results)
    yield from beyond("passkey", _passkeys)(results)
    yield from beyond("ruler", ruler.scores)(results)


def _passkeys(record: dict) -> Scores:
    """In percent, by length."""
    return {
        tokens(row["length"]): {key: 100 * row[key] for key in ("mean", "low", "high")}
        for row in record["scores"]["by_length"]
    }


def _extension(results: Path) -> Iterator[Finding]:
    """The central claim, without training: the order by disturbance and the order by loss beyond L."""
    for scale in scales.SCALES:
        if not (Path(results) / scale / "extension").is_dir():
            continue
        for factor in extension_table.factors(results, scale):
            runs = extension_table.comparison(results, scale, factor)
            losses = [run["ranges"][-1]["mean"] for run in runs]
            averages = extension_table.disturbances(results, scale, runs)
            pairs = [(average, loss) for average, loss in zip(averages, losses) if average is not None]
            if len(pairs) > 3:
                order = stats.spearmanr(*zip(*pairs))
                best = common.method_name(runs[losses.index(min(losses))])
                text = (
                    f"s = {factor:g}, Spearman's correlation of disturbance and loss beyond L over {len(pairs)} settings, "
                    f"without training: {order.statistic:+.2f} (p = {order.pvalue:.2f}); the least loss is {best}'s."
                )
                verdict = KIND if order.pvalue < 0.05 and order.statistic > 0 else NOT
                yield Finding(scale, text.replace("$", "").replace(r"\hat n", "n̂"), verdict)


def _selections(results: Path) -> Iterator[Finding]:
    for scale in scales.SCALES:
        for run in _some(results, scale, "selections"):
            found = run["spearman"]
            least = min(run["scores"], key=lambda row: row["beyond"]["mean"])
            orders = ", ".join(
                f"{order['mean']:+.2f} [{order['low']:+.2f}, {order['high']:+.2f}] ({name})"
                for name, order in found.items()
            )
            text = (
                f"s = {run['factor']:g}, Spearman's correlation of disturbance and loss beyond L over "
                f"{found['released']['n']} selections of pairs, without training: {orders}; the least loss is with "
                f"{2 * len(least['interpolated_pairs'])} dimensions interpolated."
            )
            yield Finding(scale, text, KIND if all(order["low"] > 0 for order in found.values()) else NOT)


def _time(results: Path) -> Iterator[Finding]:
    """Two per cent is the limit of every median, whatever its interval: a noisy clock shows nothing."""
    for scale in scales.SCALES:
        for record in _some(results, scale, "time_cost"):
            rows = [row for row in record["scores"] if row["run"].startswith("dprope")]
            text = "; ".join(
                f"{row['run']}, {row['phase']}: {row['relative_to_pi']:.3f} [{row['low']:.3f}, {row['high']:.3f}] of PI"
                for row in rows
            )
            yield Finding(scale, f"{text}.", KIND if all(row["relative_to_pi"] <= 1.02 for row in rows) else NOT)


def _some(results: Path, scale: str, experiment: str) -> list[dict]:
    """The records there are, but those of a checkpoint that no method here made."""
    if not any((Path(results) / scale / experiment).glob("*.json")):
        return []
    return [run for run in records.load(results, scale, experiment) if run.get("method", "several")]


def _only_720_hurts(gaps: dict[str, dict]) -> bool:
    others = {name: gap for name, gap in gaps.items() if name != "720"}
    return "720" in gaps and gaps["720"]["high"] < 0 and alike(others)


def _the_least_hurts(gaps: dict[str, dict]) -> bool:
    return gaps[min(gaps, key=float)]["high"] < 0


def _largest(values: list[str]) -> str:
    return values[-1]


def _default_b(values: list[str]) -> str:
    return "360" if "360" in values else values[-1]


CLAIMS = (
    Claim("The disturbance of PI, YaRN and the method at 8k and 16k (Table 3)", "section 5.1", _disturbance),
    Claim("The method has the least disturbance of all", "abstract, section 5.1", _least_disturbance),
    Claim("Less disturbance extends a model better", "section 5.1", _extension),
    Claim("The same, over dozens of selections of pairs (beyond the paper)", "section 5.1", _selections),
    Claim("Without extension a model collapses beyond L; extended it does not", "appendix B.2", _collapse),
    Claim(
        "Best on LongBench-E, the more so beyond L",
        "section 4.2",
        better("longbench_e", longbench.scores, last("Avg")),
    ),
    Claim("Best on RULER", "appendix B.2", better("ruler", ruler.scores, last("Avg"))),
    Claim(
        "Least perplexity",
        "appendix B.2",
        better("perplexity", perplexity.scores, extended, sign=-1, unit="of perplexity"),
    ),
    Claim(
        "Short text keeps its scores: above the other methods on Open LLM",
        "section 4.3",
        better("open_llm", openllm.scores, last("Avg")),
    ),
    Claim("All passkeys are found within the extended context", "section 4.4", _passkey),
    Claim(
        "With too few dimensions interpolated, LongBench-E falls",
        "section 5.2",
        ablation("longbench_e", longbench.scores, "n_hat", None, _largest, _the_least_hurts),
    ),
    Claim(
        "n̂ has little effect on Open LLM",
        "section 5.2",
        ablation("open_llm", openllm.scores, "n_hat", None, _largest, alike),
    ),
    Claim(
        "LongBench-E is the same for b = 90, 180, 360, and falls at 720",
        "section 5.3",
        ablation("longbench_e", longbench.scores, "intervals", 360, _default_b, _only_720_hurts),
    ),
    Claim(
        "b does not influence Open LLM",
        "section 5.3",
        ablation("open_llm", openllm.scores, "intervals", 360, _default_b, alike),
    ),
    Claim("No cost over PI in training or inference", "appendix B.2", _time),
)
