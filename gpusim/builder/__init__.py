"""ModelBuilder, which collects bodies, joints, actuators and shapes, and compiles them to a Model."""
