"""Scene data for drawing: parts of a model with meshes and materials, grounds, and poses. Uses only NumPy."""
