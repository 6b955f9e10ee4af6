"""Compiled models: the tables, the parameters and the layout of the state."""
