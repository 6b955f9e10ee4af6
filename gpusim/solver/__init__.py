"""Schedule of a step, launch plan, assembly of joints, and velocity projection."""
