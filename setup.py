"""The wheel's packages: package/ as `dprope`, and in it core/, eval/, records/ and experiments/.

The rest is in pyproject.toml."""

from setuptools import find_packages, setup

PARTS = "core", "eval", "records", "experiments"

setup(
    package_dir={"dprope": "package", **{f"dprope.{part}": part for part in PARTS}},
    packages=[
        "dprope",
        *(f"dprope.{part}" for part in PARTS),
        *(f"dprope.{part}.{name}" for part in PARTS for name in find_packages(part)),
    ],
)
