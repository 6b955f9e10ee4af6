"""Meshes: mesh files, convex hulls, triangles for drawing, and triangles of curved shapes."""
