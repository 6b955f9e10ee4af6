"""Browser view: a web page with the scene, the operator's inputs, time and scopes, served by viser.

The package imports viser only when you start the first server.
"""
