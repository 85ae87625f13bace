"""One short program for each engine; they run in the engines' environments, never in this one."""
