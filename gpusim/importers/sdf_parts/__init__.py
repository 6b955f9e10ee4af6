"""Parts of the SDFormat importer."""
