"""One short program for each engine, run by `python -m tools.beyond.engines`."""
