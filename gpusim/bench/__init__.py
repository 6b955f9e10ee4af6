"""Benchmarks: named workloads, their speed, and its ratio to the limit of the machine."""
