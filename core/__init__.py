"""Angle distributions, their disturbance, the scaling methods, and extending a model; installed as
`dprope`.

Here stand the names of the methods that have a role in comparisons, and the symbols of DPRoPE's
options, so that naming one loads no method.
"""

ORIGINAL = "original"  # the model without scaling
TIME_REFERENCE = "pi"  # times are given relative to its time
BASELINE = "yarn"  # differences are taken from its scores
PROPOSED = "dprope"  # the paper's own method
SYMBOLS = {"n_hat": "n̂", "intervals": "b", "threshold": "t"}
TRAINING_FILE = "training.json"  # what a fine-tune says of its training
TRAINING_OF_BASE = "training.base.json"  # the same in an export of it
CLEX_FILE = "clex.safetensors"  # the learned part of a CLEX checkpoint, beside its weights
