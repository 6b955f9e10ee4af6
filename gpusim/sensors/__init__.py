"""Signals: everything that can be read and written by name."""
