"""Meshes: files, convex hulls, their pieces and the triangles of curved shapes."""
