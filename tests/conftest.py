"""Settings of all tests."""

import os

import hypothesis

# The models here are small: a second thread costs more than it brings, and takes the core of the second worker.
# Torch reads these when it is imported, and so do the processes that tests start.
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

# A busy machine must not fail a property.
hypothesis.settings.register_profile("project", deadline=None)
hypothesis.settings.load_profile("project")
