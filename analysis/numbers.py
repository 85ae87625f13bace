"""Numbers as tables and pages print them: with a real minus sign, and with an interval or the value
of each text."""

from analysis.scores import LEAST_TEXTS, Score


def number(value: float, digits: int, sign: bool = False) -> str:
    """A number with a real minus sign."""
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")


def counted(count: int, noun: str) -> str:
    """A number of things: "1 text", "2,000 texts"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def interval(score: Score, digits: int) -> str:
    """[low, high]; empty where there is no interval."""
    return (
        "" if score.low is None else f"[{number(score.low, digits)}, {number(score.high, digits)}]"
    )


def by_text(score: Score, digits: int, sign: bool = False) -> str:
    """The value of each text, where there are too few for an interval over texts; empty for a
    single one."""
    few = 1 < len(score.texts) < LEAST_TEXTS
    return ", ".join(number(value, digits, sign) for value in score.texts) if few else ""


def spread(score: Score, digits: int, sign: bool = False) -> str:
    """What stands behind a number in prose: its interval and of what it is; of few texts, the value
    of each."""
    parts = [interval(score, digits)]
    each = by_text(score, digits, sign)
    parts += ["over seeds"] if score.over_seeds_alone else []
    parts += [f"(texts: {each})"] if each else ["(one text)"] if len(score.texts) == 1 else []
    return " ".join(filter(None, parts))
