"""Methods that are not in the paper: published by others since, and our own; each module here is found by listing."""
