"""python -m tables"""

from experiments.kit import command_line
from tables.kit.command import main

if __name__ == "__main__":
    command_line.run(main)
