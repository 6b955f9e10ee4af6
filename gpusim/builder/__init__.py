"""ModelBuilder: methods that add bodies, joints, actuators and shapes, and the compilation to a Model."""
