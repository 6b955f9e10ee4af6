"""Generated C++ code: headers, sources and builds of the kernels."""
