// Signals, writes and resets on a GPU: kernels over the kept state, independent of solvers and contacts. So one build
// serves all models with the same number types and kinds of actuators.
#include "signals/writes.cuh"
#include "make_world.cuh"
#include "kinds.cuh"

// Worlds with a nonzero mask take the state ``from`` (arrays packed in the order of Arguments) and ``commands``.
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
        double* own = const_cast<double*>(to->control) + (long long)id * w.controls();
        for (int k = tid; k < w.controls(); k += threads) own[k] = commands[k];
        if (tid == 0) to->health[id] = 0;
    }
}
