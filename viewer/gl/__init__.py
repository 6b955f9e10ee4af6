"""Rendering: contexts, shaders, lighting, buffers, text."""
