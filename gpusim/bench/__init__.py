"""Benchmarks: named workloads and their speed."""
