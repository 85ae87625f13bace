"""Command lines called in this process."""

from tests.experiments.conftest import call  # noqa: F401
