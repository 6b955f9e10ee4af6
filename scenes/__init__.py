"""Built-in scenes. Each is a module in a folder, with a function ``build(**parameters) -> gpusim.scene.Scene``."""
