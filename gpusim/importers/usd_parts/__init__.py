"""Parts of the USD importer."""
