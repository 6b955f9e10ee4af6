// Contact points of two shapes. gpusim compiles this part separately, once per GPU, because it does not depend on the
// model. All builds with contacts link to collide.cu (GPUSIM_LINKED).
#include "codes.cuh"
#include "collide/collide.cuh"
