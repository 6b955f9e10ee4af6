"""Built-in scenes, here or in a folder, one module each with ``build(**parameters) -> gpusim.scene.Scene``."""
