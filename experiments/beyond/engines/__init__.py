"""One short program per engine; each runs in that engine's environment, never in this project's."""
