"""Mechanisms and test rigs: linkages, cranes, motors, robot arms."""
