"""Tables that the builder computes from a description: rows, elimination order, colors, contact pairs, masses."""
