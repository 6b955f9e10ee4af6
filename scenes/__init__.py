"""Built-in scenes. Each module has a function ``build(**parameters) -> gpusim.scene.Scene``."""
