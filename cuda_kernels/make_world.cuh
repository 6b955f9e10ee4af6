// Make a World for thread ``tid`` of the ``threads`` threads of a tile or block. ``base`` is the slab.
#pragma once
#include "world.cuh"

GPUSIM_FN World make_world(const Arguments* a, double h, int id, char* base, int tid, int threads) {
    World w;
    w.a = a;
    w.h = h;
    w.id = id;
#if defined(GPUSIM_ONE_THREAD)
    (void)tid, (void)threads;
#else
    w.tid = tid;
    w.threads = threads;
#endif
    w.base = base;
#if GPUSIM_GPU
    w.slab_offset = 0;
    w.tile = threads < 32 ? ((1u << threads) - 1u) << (threadIdx.x % 32 - tid) : ~0u;
#endif
    return w;
}
