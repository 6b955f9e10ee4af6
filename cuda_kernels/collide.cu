// Contact points of two shapes as a part of its own: it knows shapes and nothing of models, so that it is compiled once
// for a GPU and linked to all builds with contacts (GPUSIM_LINKED).
#include "codes.cuh"
#include "collide/collide.cuh"
