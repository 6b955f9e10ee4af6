"""The command line: ``gpusim run``, ``gpusim list`` and ``gpusim doctor``."""
