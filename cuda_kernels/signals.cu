// Signals, writes and resets on a GPU. The kernels use only the stored state. All models with the same number types
// and actuator kinds share a build.
#include "signals/writes.cuh"
#include "make_world.cuh"
#include "kinds.cuh"

// Copy the state ``from`` and ``commands`` to all worlds with a nonzero mask. The arrays are in the order of Arguments.
GPUSIM_KERNEL void restore_worlds(const Arguments* to, const Arguments* from, const int* mask, const double* commands) {
#if GPUSIM_GPU
    const int first = blockIdx.x, stride = gridDim.x, tid = threadIdx.x, threads = blockDim.x;
#else
    const int first = 0, stride = 1, tid = 0, threads = 1;
#endif
    for (int id = first; id < to->n_worlds; id += stride) {
        if (!mask[id]) continue;
        const World w = make_world(to, 0.0, id, nullptr, tid, threads);
        restore_state(w, from);
        double* control = const_cast<double*>(to->control) + (long long)id * w.controls();
        for (int k = tid; k < w.controls(); k += threads) control[k] = commands[k];
        if (tid == 0) to->health[id] = 0;
    }
}
