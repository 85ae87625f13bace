"""Exported models, as inference engines serve them."""

from analysis.results import NotMeasured, Record, Results
from analysis.scores import number
from analysis.settings import STATES, Setting
from tables.kit.table import Block, Cell, Table, sentence_case

# Tolerances in nats: for the mean |difference| over positions, and for quantised weights, whose
# rounding changes every position, for the difference of mean losses.
EXACT = 1e-3
QUANTISED = 1e-2
_EXACT_WEIGHTS = {"checkpoint", "F32"}
RIGHT = "right"
DROPPED = "dropped"
WRONG = "wrong"
CAPTION = (
    "Mean loss (nats) of the same tokens beyond L, by an engine, by transformers 5, and by "
    "transformers 5 without "
    "extension. |Δ| is the difference between engine and transformers at a position. An engine is "
    "right if |Δ| is "
    f"at most {EXACT:g} on average or, for quantised weights, if the mean losses differ by at "
    f"most {QUANTISED:g}. "
    "“Dropped” means that by the same measure the engine agrees with the model without extension, "
    "and more closely."
)
HEADER = (
    "Method",
    "Engine",
    "Weights",
    "Engine's",
    "transformers",
    "Without",
    "Mean |Δ|",
    "Largest |Δ|",
    "Verdict",
)


def served(results: Results) -> Table:
    """Inference engines against transformers, position by position.

    A block for each state and length.
    """
    records = [run for run in results.records("served") if "engine" in run.run]
    blocks = []
    if not records:
        raise NotMeasured(
            f"no record of engines' losses under {results.folder / results.name}, and no command "
            "makes one."
        )
    records.sort(
        key=lambda run: (run.run["engine"]["name"], weights(run), Setting.of(run.run).order)
    )
    for trained, state in STATES:
        own = [run for run in records if bool(run.training) == trained]
        for length, scored in dict.fromkeys(lengths(run) for run in own):
            rows = tuple(line(run) for run in own if lengths(run) == (length, scored))
            title = f"{results.title}, measured {state}, the last {scored} of {length} tokens"
            blocks.append(Block(title, HEADER, rows))
    return Table("served", CAPTION, tuple(blocks))


def lengths(record: Record) -> tuple[int, int]:
    """How many tokens were read, and how many of them, the last, scored."""
    return record.run["tokens"], record.run["scored"]


def weights(record: Record) -> str:
    """What the engine loaded: a checkpoint, or a GGUF file's type or name."""
    return record.run["engine"].get("gguf") or record.scores["answer"]["served"]


def line(record: Record) -> tuple[Cell, ...]:
    """A record's."""
    scores = record.scores["losses"]
    apart = record.scores["apart_from"]["transformers"]
    losses = [
        Cell(number(scores[name]["mean"], 4)) for name in ("engine", "transformers", "unextended")
    ]
    gaps = [Cell(_short(apart[name]) if apart[name] else "0") for name in ("mean", "largest")]
    name = Cell(sentence_case(Setting.of(record.run).name))
    return (
        name,
        Cell(record.run["engine"]["name"]),
        Cell(weights(record)),
        *losses,
        *gaps,
        Cell(verdict(record)),
    )


def _short(difference: float) -> str:
    """With two decimals; of less than 0.005, its power of ten."""
    if difference >= 0.005:
        return f"{difference:.2f}"
    digit, power = f"{difference:.0e}".split("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digit}·10{raised}"


def verdict(record: Record) -> str:
    """RIGHT; DROPPED if the losses are those of the unextended model; else WRONG.

    It is by the nearer of the two models. Positions count, because means may agree where no
    position does.
    """
    apart = record.scores["apart_from"]
    exact = record.scores["answer"]["served"] in _EXACT_WEIGHTS
    nearer = min(("transformers", "unextended"), key=lambda name: apart[name]["mean"])
    near = apart[nearer]["mean"] <= EXACT if exact else abs(apart[nearer]["of_means"]) <= QUANTISED
    return {"transformers": RIGHT, "unextended": DROPPED}[nearer] if near else WRONG
