"""One short program for each engine, run in its environment by `python -m tools.beyond.engines`."""
