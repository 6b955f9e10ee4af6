"""Machine files: YAML files that describe whole machines.

A file combines model files, calls of builder methods, and block diagrams.
"""

from gpusim.machine_files.loader import load_machine, machine_values
from gpusim.machine_files.schema import machine_schema

__all__ = ["load_machine", "machine_schema", "machine_values"]
