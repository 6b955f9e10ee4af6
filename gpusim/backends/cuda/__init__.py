"""CUDA backend: compilation with NVRTC, memory and launches on one GPU."""
