"""The CUDA backend: NVRTC builds, memory and launches on one GPU."""
