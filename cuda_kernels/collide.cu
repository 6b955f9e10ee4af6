// Contact points of two shapes. gpusim compiles this part separately, because it does not depend on the model. Builds
// with contacts link to collide.cu (GPUSIM_LINKED).
#include "codes.cuh"
#include "collide/collide.cuh"
