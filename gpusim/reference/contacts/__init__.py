"""Reference stages of contacts: pairs of shapes, contact manifolds, contact laws and constraint rows."""
