"""Browser view: a web page with the scene, the operator's inputs, time and scopes, served by viser.

viser is imported with the first server, not with this package.
"""
