"""Tables that ``finalize`` computes: constraint rows, elimination order, constraint colors, contact pairs, masses."""
