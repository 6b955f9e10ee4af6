"""Contents of a model: records of elements, registries of element kinds, and solver settings."""
