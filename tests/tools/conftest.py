"""Command lines called in this process."""
