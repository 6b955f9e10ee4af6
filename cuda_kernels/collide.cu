// Contact points of two shapes as a separate part. It knows shapes but no models. So it is compiled once per GPU and
// linked to all builds with contacts (GPUSIM_LINKED).
#include "codes.cuh"
#include "collide/collide.cuh"
