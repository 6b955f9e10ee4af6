"""Reference readers and writers of signals."""
