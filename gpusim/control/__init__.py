"""Block diagrams ("functional schemes") that drive the commands of a simulation."""
