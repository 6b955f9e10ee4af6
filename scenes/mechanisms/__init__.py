"""Mechanisms and rigs: loops, cranes, motors, arms."""
