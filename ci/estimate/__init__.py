"""Estimates of a step's time on a GPU from operation counts: ``python ci/estimate``."""
