// Fused launch: one kernel runs all substeps. On a GPU, a tile (some threads of a warp) or a whole block runs a world.
// On a CPU, one thread runs a world. If ``steps`` is above zero, the kernel runs steps, and each tile has a slab. If
// ``steps`` is FORWARD or POSE, each world has a slab, which contains the results. With GPUSIM_SHARED_SLAB, the slabs
// are in shared memory, and the kernel only runs steps.
#if !defined(__CUDACC__) && !defined(GPUSIM_TEAM)
#define GPUSIM_ONE_THREAD  // for each world
#endif
#include "math/platform.cuh"
#if !GPUSIM_GPU  // a GPU has a separate build for signals and writes, signals.cu
#include "signals/writes.cuh"
#endif
#include "make_world.cuh"
#include "step.cuh"
#if GPUSIM_WORLD_LANES > 1
#include "simd_group.cuh"
#endif
#if !GPUSIM_GPU && defined(_OPENMP)
#include <omp.h>
#endif

GPUSIM_FN char* slab(const Arguments* a, int number) { return a->slab + (long long)number * a->slab_bytes; }
GPUSIM_PHASE void run(const World& w, int steps) {
    if (steps > 0 || GPUSIM_SHARED_SLAB) run_world(w, steps);
    else if (steps == FORWARD) forward_world(w);
    else pose_world(w);
}

// Mark the search lists as invalid, because shared memory contains data of the previous kernel.
GPUSIM_FN void forget_search(const World& w) {
    if (w.tid == 0) *w.search_owner() = 0;
}

#if GPUSIM_GPU
GPUSIM_BOUNDED_KERNEL void run_worlds(const Arguments* a, double h, int steps, int threads) {
    const int tiles = blockDim.x / threads, tile = threadIdx.x / threads, first = blockIdx.x * tiles + tile;
    for (int id = first; id < a->n_worlds; id += gridDim.x * tiles) {
        World w = make_world(a, h, id, slab(a, steps > 0 ? first : id), threadIdx.x % threads, threads);
        w.slab_offset = tile * int(a->slab_bytes + TILE_GAP);
        if (GPUSIM_SHARED_SLAB) forget_search(w);
        run(w, steps);
        w.sync();
    }
}
#else
static int thread_number() {
#if defined(_OPENMP)
    return omp_get_thread_num();
#else
    return 0;
#endif
}
#if defined(GPUSIM_TEAM)
// Only for tests: ``option`` threads run each world, and wait for each other at barriers.
GPUSIM_KERNEL void run_worlds(const Arguments* a, double h, int steps, int option) {
#pragma omp parallel num_threads(option)
    try {
        join_team(omp_get_thread_num(), omp_get_num_threads());
        for (int id = 0; id < a->n_worlds; ++id) {
            char* base = slab(a, steps > 0 ? 0 : id);
            const World w = make_world(a, h, id, base, omp_get_thread_num(), omp_get_num_threads());
            if (steps > 0) forget_search(w);
            run(w, steps);
            w.sync();
        }
    } catch (const TeamMismatch&) {  // the step is invalid, and the counter reports it
    }
}
#else
// ``option`` is the number of threads.
GPUSIM_KERNEL void run_worlds(const Arguments* a, double h, int steps, int option) {
    if (option < 2 || a->n_worlds < 2) {
        for (int id = 0; id < a->n_worlds; ++id) run(make_world(a, h, id, slab(a, steps > 0 ? 0 : id), 0, 1), steps);
        return;
    }
    // Each thread gets several pieces, to balance worlds with different amounts of work.
    const int piece = a->n_worlds < 8 * option ? 1 : a->n_worlds / (8 * option);
#pragma omp parallel for num_threads(option) schedule(dynamic, piece)
    for (int id = 0; id < a->n_worlds; ++id)
        run(make_world(a, h, id, slab(a, steps > 0 ? thread_number() : id), 0, 1), steps);
}
#if GPUSIM_WORLD_LANES > 1
GPUSIM_KERNEL long long group_bytes(const Arguments* a) { return group_size(a, make_world(a, 0.0, 0, nullptr, 0, 1)); }
// Run steps for groups of WORLD_LANES worlds. Each thread has the memory of a group.
GPUSIM_KERNEL void run_groups(const Arguments* a, double h, int steps, int threads) {
    const long long bytes = group_bytes(a);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1) if (threads > 1)
    for (int first = 0; first < a->n_worlds; first += WORLD_LANES) {
        Group g;
        make_group(g, a, h, first, a->slab + thread_number() * bytes);
        run_group(g, steps);
    }
}
#endif
#endif
#endif
