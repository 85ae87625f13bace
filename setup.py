"""The wheel's packages: core/ as `dprope`, with every package below it. The rest is in
pyproject.toml."""

from setuptools import find_packages, setup

setup(
    package_dir={"dprope": "core"},
    packages=["dprope", *(f"dprope.{name}" for name in find_packages("core"))],
)
