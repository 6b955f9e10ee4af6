"""A small kernel of three files, for the tests of compilation."""

GPU_KERNEL = {
    "twice.cu": '#include "part/scale.cuh"\n'
    'extern "C" __global__ void twice(double* x) { x[0] = SCALE * x[1] + offset(); }\n',
    "part/scale.cuh": '#pragma once\n#include "offset.cuh"\n#include "../part/offset.cuh"\n#define SCALE 2.0\n',
    "part/offset.cuh": "#pragma once\nstatic __device__ double offset() { return OFFSET; }\n",
}
OFFSET = {"OFFSET": "0.5"}
WRONG = "#pragma once\n\nstatic inline double offset() { return not_there; }\n"
