"""Vehicles, diggers and walkers."""
