"""What a model consists of: records of its elements, the registries of their kinds, and the solver settings."""
