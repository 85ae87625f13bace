"""The pages that say what came out, and how they print what the records hold."""

from experiments.records import ROOT


def page(path: str) -> tuple[str, str]:
    """A page's text, and the same in one line, where a sentence is found wherever its lines break."""
    text = (ROOT / path).read_text()
    return text, " ".join(text.split())


README, PROSE = page("README.md")


def name_of(run: dict) -> str:
    """A row's first cell: the method, and what of its options sets it apart."""
    names = {"original": "original", "pi": "PI", "ntk": "NTK-aware", "yarn": "YaRN", "clex": "CLEX", "dprope": "DPRoPE"}
    name = names.get(run["method"], "DPRoPE, significant")
    if run["method"] == "dprope":
        name += f", n̂ = {run['options']['n_hat']}" if "n_hat" in run["options"] else ", t = 0"
        name += f", b = {run['options']['intervals']}" if "intervals" in run["options"] else ""
    if "attention_factor" in run["options"]:
        name += f", attention × {run['options']['attention_factor']:.2f}"
    return name


def cell(score: dict, digits: int, factor: float = 1) -> str:
    """A score with its interval."""
    return "{} [{}, {}]".format(*(f"{factor * score[key]:.{digits}f}" for key in ("mean", "low", "high")))


def signed(score: dict) -> str:
    """A difference with its interval."""
    return f"{score['mean']:+.3f} [{score['low']:.3f}, {score['high']:.3f}]".replace("-", "−")
