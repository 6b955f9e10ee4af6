"""File formats of recorded signals. Each format has a module, and ``writers.py`` lists the formats."""
