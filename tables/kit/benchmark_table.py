"""What benchmark tables share: the paper's rows, and below them, never mixed, what was measured."""

from collections.abc import Callable, Iterable, Sequence

from analysis import metrics, published
from analysis.comparison import Comparison, Metrics, Row, ablations, comparisons, in_comparison
from analysis.results import Record, Results
from analysis.settings import AS_IT_IS, STATES, SYMBOLS, default_of, seed_count
from core import ORIGINAL, PROPOSED
from tables.kit.table import Block, Table, score_block

INTERVALS = (
    "with 95 % intervals for samples (bootstrap) and, where there are several, training seeds "
    "(Student's)"
)
OVER_TEXTS = (
    "Brackets hold Student's 95 % interval over texts and, where there are several, seeds. Fewer "
    "than five texts are "
    "no sample: parentheses hold each text's value, and an interval is over seeds on these texts "
    "alone."
)
APART = ", not comparable with the rows above"
_COUNTED = {"n_hat": "interpolated dimensions n̂", "intervals": "intervals b"}
_BENCHMARKS = {"longbench_e": "LongBench-E", "open_llm": "the Open LLM benchmarks"}


def benchmark(
    results: Results,
    name: str,
    caption: str,
    of: Metrics,
    paper: str = "",
    title_suffix: Callable[[Record], str] = lambda record: "",
    digits: int = 1,
    best: Callable = max,
) -> Table:
    """An experiment's table: published blocks where the paper has any, then what was measured of
    the model.

    Records that are not comparable with each other are in blocks of their own, the largest first.

    Args:
        name: of the experiment, and of the table.
        of: from a record to scores.
        paper: the paper's table, whose rows are in results/paper/NAME.csv.
        title_suffix: what of the benchmark a record holds, for its block's title.

    Raises:
        NotMeasured: the model has no record of it.
    """
    blocks = published_blocks(name) if paper else []
    for state, apart, rows in main_comparisons(results, name):
        title = _title(results, state, rows.rows) + title_suffix(rows.first) + apart
        scored = [(label, row.scores(of)) for label, row in labelled_rows(rows, of)]
        blocks.append(score_block(title, scored, digits=digits, best=best))
    return Table(name, caption, tuple(blocks), paper)


def main_comparisons(
    results: Results, experiment: str, twins: bool = True
) -> list[tuple[str, str, Comparison]]:
    """The state and the title's end of each comparable set of records, the largest first, and its
    rows of no ablation.

    Raises:
        NotMeasured: there are no such rows.
    """
    results.require(experiment)
    blocks = []
    listed = in_comparison(results.model)
    for trained, state in STATES:
        apart = ""
        for every in comparisons(results, experiment, trained, twins=twins):
            rows = every.only(listed)
            if rows:
                blocks.append((state, apart, rows))
                apart = APART
    if not blocks:
        raise results.lacks(
            f"record of {experiment} besides ablations and factors from a file", experiment
        )
    return blocks


def ablation(results: Results, experiment: str, option: str, paper: str) -> Table:
    """DPRoPE's rows by the value of one option, below the paper's; a record that does not state it
    has the default.

    Args:
        paper: the paper's table.

    Raises:
        NotMeasured: fewer than two values have records.
    """
    name = f"{option}_{experiment}"
    default = default_of(option)
    measured = []
    for state, varied in ablations(results, experiment, option, default):
        own = list(varied.values())
        title = f"{_title(results, state, own)}, s = {own[0].setting.factor:g}"
        rows = [
            (str(value), row.scores(getattr(metrics, experiment))) for value, row in varied.items()
        ]
        measured.append(score_block(title, rows, first=SYMBOLS[option]))
    if not measured:
        options = f"--method {PROPOSED} --{option.replace('_', '-')} N"
        raise results.lacks(f"ablation over {SYMBOLS[option]} by {experiment}", experiment, options)
    above = [
        score_block(f"{model}, published, s = 2", rows.items(), first=SYMBOLS[option])
        for model, rows in published.rows(name).items()
    ]
    caption = (
        f"Influence of the number of {_COUNTED[option]} on {_BENCHMARKS[experiment]}. Measured "
        f"rows have 95 % "
        "intervals, and of the fine-tuned ones only the seeds that every row has, so they can "
        "differ from the "
        f"main table. {'DPRoPE is that of t = 0. ' if option == 'intervals' else ''}The best is "
        f"bold."
    )
    return Table(name, caption, (*above, *measured), paper)


def published_blocks(name: str) -> list[Block]:
    """The paper's rows; its best in bold as everywhere."""
    best = min if name == "perplexity" else None if name == "time_cost" else max
    by_model = published.rows(name).items()
    return [score_block(f"{model}, published", rows.items(), best=best) for model, rows in by_model]


def _title(results: Results, state: str, rows: Sequence[Row]) -> str:
    """Of a block: the model, the samples where they were generated in the place of a benchmark's,
    the training."""
    benchmark = f"{rows[0].first.benchmark}, " if rows[0].first.benchmark else ""
    return f"{results.model.title}, {benchmark}measured {state}{seeds(rows)}"


def seeds(rows: Iterable[Row]) -> str:
    """How many seeds the rows of fine-tuned models have at most, for a block's title; others name
    their own."""
    most = max((len(row.seeds) for row in rows), default=0)
    return f", {seed_count(most)}" if most else ""


def labelled_rows(rows: Comparison, of: Metrics) -> list[tuple[str, Row]]:
    """Rows by their name with its factor, and its seeds where others have more.

    The unextended model, which no s changes, is one line where it can be.
    """
    most = max((len(row.seeds) for row in rows.rows), default=0)
    plain = [row for row in rows.rows if row.setting.method == ORIGINAL]
    once = plain and all(row.scores(of) == plain[0].scores(of) for row in plain)
    labelled = []
    for row in rows.rows:
        if once and row in plain[1:]:
            continue
        factor = (
            None if (once and row in plain) or row.setting.name == AS_IT_IS else row.setting.factor
        )
        name = published.with_factor(row.setting.name, row.setting.method, factor)
        if 0 < len(row.seeds) < most:
            name += f", {seed_count(len(row.seeds))}"
        labelled.append((name, row))
    return labelled
