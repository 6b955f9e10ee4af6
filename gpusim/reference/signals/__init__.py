"""Reference implementation of reading and writing signals."""
