"""Sweeps: run a scene with many values of its parameters. Each run is a world of a simulation."""
