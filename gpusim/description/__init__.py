"""Contents of a model: records of the elements, registries of the kinds of elements, and the solver settings."""
