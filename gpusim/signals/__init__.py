"""Signals: all quantities that can be read and written by name."""
