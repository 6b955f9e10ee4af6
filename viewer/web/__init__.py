"""Browser view: the scene, the operator's inputs, time and scopes on a page of a server, through viser.

Importing this package does not load viser. The first server loads viser.
"""
