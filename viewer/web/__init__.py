"""Browser view: a web page with the scene, the operator's inputs, time and scopes, served by viser.

Importing this package does not load viser. The first server loads viser.
"""
