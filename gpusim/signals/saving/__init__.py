"""Snapshots and checkpoints of a simulation."""
