"""What one GPU in thirty minutes says of the paper's scale: bench/gpu.sh runs the parts, each a module here."""
