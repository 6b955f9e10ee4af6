"""The command line: ``gpusim run``, ``gpusim list``, ``gpusim bench`` and ``gpusim doctor``."""
