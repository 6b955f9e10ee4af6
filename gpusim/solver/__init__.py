"""The order of a step: step.py reads on one screen, schedule.py says all; assembly."""
