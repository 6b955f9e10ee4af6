"""The model builder: bodies, joints, actuators and shapes by Python calls, and their compilation to a Model."""
