"""python -m figures"""

from experiments.kit import command_line
from figures.kit.command import main

if __name__ == "__main__":
    command_line.run(main)
