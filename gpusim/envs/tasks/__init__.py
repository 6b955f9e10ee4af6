"""Tasks with registered ids."""
