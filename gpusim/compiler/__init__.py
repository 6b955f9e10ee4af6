"""Compiler of models for ``finalize``: constraint rows, elimination order, constraint colors, contacts, masses."""
