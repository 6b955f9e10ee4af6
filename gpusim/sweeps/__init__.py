"""Sweeps: run a scene with many values of its parameters. Each combination of values is a world of a simulation."""
