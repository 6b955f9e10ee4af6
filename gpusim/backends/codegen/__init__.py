"""Generated C++: the headers, sources and build variants of the kernels."""
