"""Reference stages that solve joints and contacts together, and move the bodies."""
