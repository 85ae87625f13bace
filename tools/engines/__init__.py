"""One short program for each engine, which runs in that engine's environment; `python -m tools.engines` calls them."""
