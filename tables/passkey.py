"""The numbers of Figure 4: passkeys found by length."""

from analysis import metrics
from analysis.metrics import ALL, Passkeys, passkeys_by_length
from analysis.results import Results
from analysis.scores import interval
from tables.kit.benchmark_table import labelled_rows, main_comparisons
from tables.kit.table import NO_RECORD, Block, Cell, Table, sentence_case

CAPTION = (
    "Passkeys found, out of those asked for, by the length of the text in tokens. Counts add up "
    "all training seeds, "
    "which get the same prompts. So the 95 % interval of the share in brackets (per cent) counts "
    "each prompt once "
    "(Wilson's) and adds the spread of the seeds (Student's)."
)


def build(results: Results) -> Table:
    """From the records of experiments.passkey, the main comparison's settings; those of the same
    pairs once."""
    blocks = []
    for state, apart, rows in main_comparisons(results, "passkey", twins=False):
        counts = [
            (label, passkeys_by_length(row)) for label, row in labelled_rows(rows, metrics.passkey)
        ]
        blocks.append(_block(f"{results.model.title}, measured {state}{apart}", counts))
    return Table("passkey", CAPTION, tuple(blocks), "Figure 4")


def _block(title: str, rows: list[tuple[str, dict[str, Passkeys]]]) -> Block:
    lengths = dict.fromkeys(length for _, counts in rows for length in counts if length != ALL)
    columns = (*lengths, ALL)
    lines = []
    for label, counts in rows:
        lines.append(
            (Cell(sentence_case(label)), *(_cell(counts.get(column)) for column in columns))
        )
    return Block(title, ("Method", *columns), tuple(lines))


def _cell(keys: Passkeys | None) -> Cell:
    return Cell(f"{keys.found}/{keys.asked}", interval(keys.share, 0)) if keys else Cell(NO_RECORD)
