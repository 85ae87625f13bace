"""Whether an engine computes what was exported: a verdict on a record of tools.beyond.engines."""

# Tolerances in nats: for the mean |difference| over positions, and for quantised weights, whose rounding changes every
# position, for the difference of mean losses.
EXACT, QUANTISED = 1e-3, 1e-2
_EXACT_WEIGHTS = {"checkpoint", "F32"}
RIGHT, DROPPED, WRONG = "right", "dropped", "wrong"


def verdict(record: dict) -> str:
    """RIGHT; DROPPED if the losses are those of the unextended model; else WRONG.

    It is by the nearer of the two models. Positions count, because means may agree where no position does.
    """
    apart, exact = record["scores"]["apart_from"], record["answer"]["served"] in _EXACT_WEIGHTS
    nearer = min(("transformers", "unextended"), key=lambda name: apart[name]["mean"])
    near = apart[nearer]["mean"] <= EXACT if exact else abs(apart[nearer]["of_means"]) <= QUANTISED
    return {"transformers": RIGHT, "unextended": DROPPED}[nearer] if near else WRONG
