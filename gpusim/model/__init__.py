"""Compiled models: index tables, parameters, and layout of the state arrays."""
