"""Reference stages that solve joints and contacts and move the bodies."""
