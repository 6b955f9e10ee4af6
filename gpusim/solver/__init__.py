"""The order of a step (schedule.py, step.py), the launch plan, assembly and velocity projection."""
