"""Tables that ``finalize`` computes from a model: rows, elimination order, colors, contact pairs, masses."""
