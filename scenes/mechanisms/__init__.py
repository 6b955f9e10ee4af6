"""Mechanisms and test rigs: loops, cranes, motors, arms."""
