"""Benchmarks for the paper's scale that take one GPU thirty minutes; bench/gpu.sh runs each module here."""
