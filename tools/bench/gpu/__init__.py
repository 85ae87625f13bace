"""Benchmarks for the paper's scale that take one GPU thirty minutes; tools/bench/gpu.sh runs each module here."""
