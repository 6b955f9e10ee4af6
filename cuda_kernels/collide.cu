// Contact points of two shapes. This part is compiled separately, once per GPU, because it does not depend on the
// model. All builds with contacts link to it (GPUSIM_LINKED).
#include "codes.cuh"
#include "collide/collide.cuh"
