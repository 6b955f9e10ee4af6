"""Contents of a model: dataclasses of elements, registries of element kinds, and solver settings."""
