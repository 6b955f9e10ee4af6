"""The step and its settings: step.py reads on one screen; coloring and elimination order the rows."""
