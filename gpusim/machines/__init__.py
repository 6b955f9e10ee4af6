"""Machine parts as macros over the model builder: suspensions, wheels, tracks."""
