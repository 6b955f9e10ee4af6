"""Signals: physical quantities, commands and parameters that you can read or write by name."""
