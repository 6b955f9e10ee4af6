"""How it is drawn: contexts, shaders, light, buffers, letters. No module here draws by being imported."""
