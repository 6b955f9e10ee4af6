"""The command line ``gpusim``."""
