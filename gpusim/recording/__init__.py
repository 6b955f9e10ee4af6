"""Recordings of signals over time: sampling, NPZ files and plots."""
