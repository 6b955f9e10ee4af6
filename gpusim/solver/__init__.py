"""Order of the phases of a step (schedule.py, step.py), launch plan, assembly and velocity projection."""
