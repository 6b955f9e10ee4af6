"""Reference stages of contacts: shape pairs, contact manifolds, contact laws and constraint rows."""
