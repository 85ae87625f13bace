"""python -m tables"""

from experiments.lab import cli
from tables.kit.command import main

if __name__ == "__main__":
    cli.run(main)
