"""Built-in scenes, one module each with ``build(**parameters) -> gpusim.scene.Scene``."""
