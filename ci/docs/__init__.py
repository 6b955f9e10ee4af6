"""Pages, pictures and stubs that scripts make from the code."""
