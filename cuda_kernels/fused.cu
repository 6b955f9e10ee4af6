// Fused launch: one block a world, all substeps in one kernel. On the CPU a block is one thread and worlds are spread
// over threads.
#include "step.cuh"
#if !GPUSIM_GPU && defined(_OPENMP)
#include <omp.h>
#endif

#if GPUSIM_GPU
// Work in shared memory where it fits (``shared`` nonzero), else in the slab of this block.
GPUSIM_FN World block_world(const Arguments* a, double h, int id, int shared, int slab) {
    extern __shared__ double shared_slab[];
    World w;
    w.a = a;
    w.h = h;
    w.id = id;
    w.tid = threadIdx.x;
    w.threads = blockDim.x;
    w.base = shared ? reinterpret_cast<char*>(shared_slab) : a->slab + (long long)slab * a->slab_bytes;
    return w;
}
// One kernel for both, so that their functions are compiled once: ``steps`` of 0 stands for the stage sense, which
// leaves its work in the slab of each world.
GPUSIM_KERNEL void run_worlds(const Arguments* a, double h, int steps, int shared) {
    for (int id = blockIdx.x; id < a->n_worlds; id += gridDim.x) {
        const World w = block_world(a, h, id, shared, steps ? blockIdx.x : id);
        if (steps) run_world(w, steps);
        else sense_world(w);
        w.sync();
    }
}
#else
static World cpu_world(const Arguments* a, double h, int id, int slab) {
    World w;
    w.a = a;
    w.h = h;
    w.id = id;
    w.tid = 0;
    w.threads = 1;
    w.base = a->slab + (long long)slab * a->slab_bytes;
    return w;
}
static int thread_number() {
#if defined(_OPENMP)
    return omp_get_thread_num();
#else
    return 0;
#endif
}
GPUSIM_KERNEL void step_worlds(const Arguments* a, double h, int steps, int threads) {
    // A single world does not pay for a team of threads.
    if (threads < 2 || a->n_worlds < 2) {
        for (int id = 0; id < a->n_worlds; ++id) run_world(cpu_world(a, h, id, 0), steps);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4)
    for (int id = 0; id < a->n_worlds; ++id) run_world(cpu_world(a, h, id, thread_number()), steps);
}
GPUSIM_KERNEL void sense_worlds(const Arguments* a, double h, int threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1 && a->n_worlds > 1)
    for (int id = 0; id < a->n_worlds; ++id) sense_world(cpu_world(a, h, id, id));
}
#endif
