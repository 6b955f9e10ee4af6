"""Compiled models: index tables, parameters and the layout of the state."""
