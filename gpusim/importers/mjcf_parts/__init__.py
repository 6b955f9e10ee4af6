"""Parts of the MJCF importer."""
