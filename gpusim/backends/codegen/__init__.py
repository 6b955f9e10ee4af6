"""Generated C++ code: headers, sources and build variants of the kernels."""
