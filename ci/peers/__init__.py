"""Benchmark workloads of ``gpusim bench`` in other simulators (peers): ``python ci/peers``."""
