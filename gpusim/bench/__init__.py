"""Benchmarks: named workloads, their speed, and how far that is from what the machine could do."""
