"""NumPy backend: the reference implementation of the step."""
