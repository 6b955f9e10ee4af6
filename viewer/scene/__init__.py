"""What is drawn: parts of a model with their meshes and materials, grounds, and where all of it is. NumPy alone."""
