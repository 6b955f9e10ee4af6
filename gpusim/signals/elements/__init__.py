"""Signals of the elements of a model: bodies, joints, actuators, contacts and sensors."""
