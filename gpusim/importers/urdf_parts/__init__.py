"""Parts of the URDF importer."""
