"""What the suites measure beyond the paper."""
