"""Rendering: contexts, shaders, lighting, buffers, text. Importing a module here draws nothing."""
