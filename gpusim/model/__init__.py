"""Models: records, kinds and their registries, builder, checks, tables, model and state."""
