"""What is measured within L and beyond it on the same books: losses, and keys."""

WITHIN = "within L"
BEYOND = "beyond L"
CHANGE = "beyond minus within"
PLACES = (WITHIN, BEYOND, CHANGE)
