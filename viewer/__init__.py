"""OpenGL viewer: draws what a simulation computes; imports gpusim, never the reverse."""
