"""The benchmarks: Tables 1, 2 and 8 to 10, the ablations (Tables 4 to 7), and passkeys.

Each table is a few lines, above. Below is what they share: the paper's rows stand first, and never
mixed with them what was measured.
"""

from collections.abc import Callable, Iterable, Sequence

from analysis import metrics, published
from analysis.comparison import Comparison, Metrics, Row, ablations, comparisons, in_comparison
from analysis.metrics import passkeys_by_length
from analysis.results import Record, Results
from analysis.scores import Score, book_of, counted, interval
from analysis.settings import STATES, seed_count
from core import ORIGINAL, PROPOSED, SYMBOLS, TIME_REFERENCE, rope
from core.setting import tokens
from tables.kit.table import Block, Cell, Table, score_block, sentence_case, titles

INTERVALS = (
    "with 95 % intervals for samples (bootstrap) and, where there are several, training seeds "
    "(Student's)"
)
DIGITS = {"perplexity": 2}  # after the point; other scores have one
PUBLISHED = ", published"  # ends the title of a block of the paper's rows, of no ablation
OVER_TEXTS = (
    "Brackets hold Student's 95 % interval over texts and, where there are several, seeds. Fewer "
    "than five texts are no sample: parentheses hold each text's value, and an interval is over "
    "seeds on these texts alone."
)


def longbench_e(results: Results) -> Table:
    """Table 1: LongBench-E, mean over its tasks by length."""
    caption = (
        f"LongBench-E, mean score over its tasks by length in words. Measured rows: {INTERVALS}. "
        "A prompt that exceeds L' loses its middle, so the original has a row for each s. "
        "A miniature is generated and cannot be compared with the benchmark. Best in bold."
    )

    def which(record: Record) -> str:
        """The tasks, where they are not all 13; and how many samples, which may be the first few of
        each."""
        names = list(record.scores.get("tasks", ()))
        tasks = f", {', '.join(names)} only" if 0 < len(names) < 13 else ""
        samples = record.run.get("data", {}).get("samples")
        return tasks + (f", {counted(samples, 'sample')}" if samples else "")

    return benchmark(results, "longbench_e", caption, "Table 1", which)


def open_llm(results: Results) -> Table:
    """Table 2: the Open LLM benchmarks."""
    caption = (
        "Open LLM benchmarks (%): TruthfulQA (mc2, 0-shot), HellaSwag (0-shot), MMLU (5-shot), "
        "ARC-c (25-shot), fewer where a title says so. Measured rows: on the sample of documents "
        f"that the record names, {INTERVALS}. A miniature is generated and cannot be "
        "compared with the benchmarks. Best in bold."
    )

    def shots(record: Record) -> str:
        """How many examples a prompt has at most, where that is not the benchmarks' own number."""
        return f", at most {record.run['shots']} shots" if "shots" in record.run else ""

    return benchmark(results, "open_llm", caption, "Table 2", shots)


def n_hat_longbench_e(results: Results) -> Table:
    """Table 4: LongBench-E by n̂, the number of interpolated dimensions."""
    return _ablation(results, "longbench_e", "n_hat", paper="Table 4")


def n_hat_open_llm(results: Results) -> Table:
    """Table 5: Open LLM by n̂, the number of interpolated dimensions."""
    return _ablation(results, "open_llm", "n_hat", paper="Table 5")


def intervals_longbench_e(results: Results) -> Table:
    """Table 6: LongBench-E by b, the number of intervals."""
    return _ablation(results, "longbench_e", "intervals", paper="Table 6")


def intervals_open_llm(results: Results) -> Table:
    """Table 7: Open LLM benchmarks by b, the number of intervals."""
    return _ablation(results, "open_llm", "intervals", paper="Table 7")


def ruler(results: Results) -> Table:
    """Table 8: RULER by length, mean over its tasks."""
    caption = (
        "RULER: the mean score (%) of its tasks, by evaluation length in tokens. Measured rows "
        "have 95 % intervals for samples (Wilson's over all tasks, wide rather than narrow) and, "
        "where there are several, for training seeds (Student's). The best is bold."
    )

    def tasks(record: Record) -> str:
        """How many tasks, where they are not all 13, and what one prompt counts, where a task has
        only one."""
        count = len(record.run["tasks"])
        title = "" if count == 13 else f", {count} of 13 tasks"
        if record.run.get("samples") == 1:
            title += f", one prompt a task, each {100 / count:.1f} points"
        return title

    return benchmark(results, "ruler", caption, "Table 8", tasks)


def time_cost(results: Results) -> Table:
    """Table 9: time of a training step and of a forward pass."""
    reference = rope.METHODS[TIME_REFERENCE].title
    caption = (
        f"Time of a training step and of a forward pass, relative to {reference}. Measured rows "
        "are the median over rounds, with a 95 % interval in brackets where there are six or more; "
        f"every round times every method once, in an order of its own. “{reference}, again” is "
        f"{reference} timed a second time in every round, so it shows the error of the clock."
    )
    blocks = published_blocks("time_cost", best=None)
    for record in results.require("time_cost"):
        rows: dict[str, dict[str, Score]] = {}
        for setting, row, score in metrics.times(record):
            name = f"{setting.name}, again" if row["again"] else setting.name
            rows.setdefault(name, {})[row["phase"]] = score
        rounds = record.scores["rows"][0]["rounds"]
        measured = f"measured at {record.run['length']} tokens, {rounds} rounds"
        title = f"{results.title}, {measured}, s = {record.run['factor']:g}"
        blocks.append(score_block(title, rows.items(), digits=3, best=None))
    return Table("time_cost", caption, blocks, "Table 9")


def perplexity(results: Results) -> Table:
    """Table 10: sliding-window perplexity by length.

    Beginnings of texts and whole ones stand apart.
    """
    caption = (
        "Sliding-window perplexity by evaluation length in tokens, at a stride of S = 256 unless "
        "stated. Published rows are on PG19. Measured perplexity is exp of the mean loss over the "
        "texts that a title names, each token of a text weighing the same. "
        f"{OVER_TEXTS} The best is bold."
    )

    def which(record: Record) -> str:
        """Which texts and which part of them were scored, and the stride or strides, where not the
        paper's."""
        most = record.run["tokens"]
        beginnings = "" if most is None else f", first {most:,} tokens"
        stride = record.run["stride"]
        strides = str(stride)
        if isinstance(stride, list):
            at = zip(stride, map(tokens, record.run["lengths"]), strict=True)
            strides = ", ".join(f"{each} at {length}" for each, length in at)
        stated = "" if stride == 256 else f", S = {strides}"
        return f"{beginnings}{stated}, {titles(map(book_of, record.run['data']))}"

    return benchmark(results, "perplexity", caption, "Table 10", which, min)


def passkey(results: Results) -> Table:
    """The numbers of Figure 4: passkeys found by length.

    The main comparison's settings.
    """
    caption = (
        "Passkeys found, out of those asked for, by the length of the text in tokens. Counts add "
        "up all training seeds, which get the same prompts. Keys at one depth are mostly all found "
        "or none, so the 95 % interval of the share in brackets (per cent) counts each length and "
        "depth once (Wilson's), and adds the spread of the seeds (Student's)."
    )
    blocks = []
    for apart, rows in main_comparisons(results, "passkey"):
        labelled = labelled_rows(rows, metrics.passkey)
        counts = [(label, passkeys_by_length(row)) for label, row in labelled]
        columns = list(counts[0][1])  # comparable records are of the same lengths
        lines = [
            (Cell(sentence_case(label)), *(_passkeys(*of[column]) for column in columns))
            for label, of in counts
        ]
        title = _title(results, rows.rows) + apart
        blocks.append(Block(title, ("Method", *columns), lines))
    return Table("passkey", caption, blocks, "Figure 4")


def _passkeys(found: int, asked: int, share: Score) -> Cell:
    return Cell(f"{found}/{asked}", interval(share, 0))


def benchmark(
    results: Results,
    name: str,
    caption: str,
    paper: str = "",
    title_suffix: Callable[[Record], str] = lambda record: "",
    best: Callable = max,
) -> Table:
    """An experiment's table: published blocks where the paper has any, then what was measured of
    the model.

    Records that are not comparable with each other are in blocks of their own, the largest first.

    Args:
        name: of the experiment, of the table, and of the function of analysis.metrics from a
            record to scores, if there is one.
        paper: the paper's table, whose rows are in results/paper/NAME.csv.
        title_suffix: what of the benchmark a record holds, for its block's title.
        best: which mean of a column is bold.

    Raises:
        NotMeasured: the model has no record of it.
    """
    of = getattr(metrics, name, metrics.generic)
    digits = DIGITS.get(name, 1)
    blocks = published_blocks(name, best=best) if paper else []
    for apart, rows in main_comparisons(results, name):
        title = _title(results, rows.rows) + title_suffix(rows.first) + apart
        scored = [(label, row.scores(of)) for label, row in labelled_rows(rows, of)]
        blocks.append(score_block(title, scored, digits=digits, best=best))
    return Table(name, caption, blocks, paper)


def main_comparisons(results: Results, experiment: str) -> list[tuple[str, Comparison]]:
    """The title's end of each comparable set of records, the largest first, and its
    rows of no ablation.

    Raises:
        NotMeasured: there are no such rows.
    """
    results.require(experiment)
    blocks = []
    for trained in STATES:
        apart = ""
        for every in comparisons(results, experiment, trained):
            listed = (row for row in every.rows if in_comparison(results, row.setting))
            if rows := Comparison(tuple(listed)):
                blocks.append((apart, rows))
                apart = ", not comparable with the rows above"
    if not blocks:
        raise results.lacks(
            f"record of {experiment} besides ablations and factors from a file", experiment
        )
    return blocks


def _ablation(results: Results, experiment: str, option: str, paper: str) -> Table:
    """DPRoPE's rows by the value of one option, below the paper's; a record that does not state it
    has the default.

    Args:
        paper: the paper's table.

    Raises:
        NotMeasured: fewer than two values have records.
    """
    name = f"{option}_{experiment}"
    symbol = SYMBOLS[option]
    measured = ablations(results, experiment, option)
    if not measured:
        options = f"--method {PROPOSED} --{option.replace('_', '-')} N"
        raise results.lacks(f"ablation over {symbol} by {experiment}", experiment, options)
    blocks = published_blocks(name, ", published, s = 2", symbol)
    of = getattr(metrics, experiment)
    for varied in measured:
        rows = list(varied.values())
        title = f"{_title(results, rows)}, s = {rows[0].setting.factor:g}"
        scored = [
            (with_training(str(value), row, rows), row.scores(of)) for value, row in varied.items()
        ]
        blocks.append(score_block(title, scored, symbol))
    varied_number = {"n_hat": "interpolated dimensions n̂", "intervals": "intervals b"}[option]
    benchmarks = {"longbench_e": "LongBench-E", "open_llm": "the Open LLM benchmarks"}[experiment]
    rows = [row for varied in measured for row in varied.values()]
    n_hats = dict.fromkeys(row.setting.option("n_hat") for row in rows)
    by = " and ".join(f"{SYMBOLS['n_hat']} = {each}" if each else "t = 0" for each in n_hats)
    which = f"DPRoPE is that of {by}. " if option == "intervals" else ""
    same = all(len({row.seeds for row in varied.values()}) == 1 for varied in measured)
    of_seeds = (
        "and of the fine-tuned ones only the seeds that every row has, so they can differ from the "
        "main table"
        if same
        else "and the fine-tuned ones all their seeds, of which they share none"
    )
    caption = (
        f"Influence of the number of {varied_number} on {benchmarks}. Measured rows have 95 % "
        f"intervals, {of_seeds}. {which}The best is bold."
    )
    return Table(name, caption, blocks, paper)


def published_blocks(
    name: str, title: str = PUBLISHED, first: str = "Method", best: Callable | None = max
) -> list[Block]:
    """The paper's rows of a table; its best in bold as everywhere.

    Args:
        title: what follows the model's name in the title of a block.
        first: the header of the rows' names.
    """
    return [
        score_block(f"{model}{title}", rows.items(), first, best=best)
        for model, rows in published.rows(name).items()
    ]


def _title(results: Results, rows: Sequence[Row]) -> str:
    """Of a block: the model, the samples where they were generated in the place of a benchmark's,
    the training, and the precision."""
    benchmark = f"{rows[0].first.benchmark}, " if rows[0].first.benchmark else ""
    trained = f"{rows[0].state}{seeds(rows)}"
    return f"{results.title}, {benchmark}measured {trained}{precision(rows[0].first)}"


def precision(record: Record) -> str:
    """The dtype of a block's models where it is not float32, for its title."""
    dtype = record.run.get("dtype", "float32")
    return "" if dtype == "float32" else f", in {dtype}"


def seeds(rows: Iterable[Row]) -> str:
    """How many seeds the rows of fine-tuned models have at most, for a block's title; others name
    their own."""
    most = max(len(row.seeds) for row in rows)
    return f", {seed_count(most)}" if most else ""


def labelled_rows(rows: Comparison, of: Metrics) -> list[tuple[str, Row]]:
    """Rows by their name with its factor, and its seeds where others have more.

    The unextended model, which no s changes, is one line where it can be.
    """
    plain = [row for row in rows.rows if row.setting.method == ORIGINAL and row.setting.plain()]
    if any(row.scores(of) != plain[0].scores(of) for row in plain):
        plain = []
    labelled = []
    for row in rows.rows:
        setting = row.setting
        name = setting.name
        if setting.method is not None and row not in plain:
            name = published.with_factor(name, setting.method, setting.factor)
        if row not in plain[1:]:
            labelled.append((with_training(name, row, rows.rows), row))
    return labelled


def with_training(name: str, row: Row, rows: Sequence[Row]) -> str:
    """A row's name, with the number of its seeds where others have more, and with that of its steps
    where others of its s have another."""
    if 0 < len(row.seeds) < max(len(each.seeds) for each in rows):
        name += f", {seed_count(len(row.seeds))}"
    steps = {each.steps for each in rows if each.setting.factor == row.setting.factor}
    return f"{name}, {row.steps:,} steps" if row.steps and len(steps) > 1 else name
