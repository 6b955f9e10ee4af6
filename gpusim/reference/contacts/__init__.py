"""Reference stages of contacts: pairs, manifolds, laws and rows."""
