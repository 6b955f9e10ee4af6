"""Meshes: files, convex hulls, pieces for drawing, and triangles of curved shapes."""
