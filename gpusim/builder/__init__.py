"""The model builder: Python calls add bodies, joints, actuators and shapes. The builder compiles a Model from them."""
