"""The names of the methods that have a role in comparisons, and the symbols of DPRoPE's options.
They stand apart, so that naming one loads no method."""

ORIGINAL = "original"  # the model without scaling
TIME_REFERENCE = "pi"  # times are given relative to its time
BASELINE = "yarn"  # differences are taken from its scores
PROPOSED = "dprope"  # the paper's own method
SYMBOLS = {"n_hat": "n̂", "intervals": "b", "threshold": "t"}
