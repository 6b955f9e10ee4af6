"""File formats of recorded signals. Each module contains one format. ``writers.py`` lists all formats."""
