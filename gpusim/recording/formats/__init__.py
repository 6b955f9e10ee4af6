"""File formats of recordings of signals, one file each. ``writers.py`` lists them."""
