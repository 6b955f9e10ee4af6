"""Compiled models: index tables, parameters and state arrays."""
