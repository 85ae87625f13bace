"""python -m figures"""

from experiments.lab import cli
from figures.kit.command import main

if __name__ == "__main__":
    cli.run(main)
