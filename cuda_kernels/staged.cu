// Staged launch: one kernel for each phase (and level or color) over all items of all worlds, for big worlds. The order
// is in gpusim/solver/schedule.py, from which the entries are generated (entries.cuh); the phases are those of the fused
// launch.
#if !GPUSIM_GPU  // where signals and resets are in the fused build
#include "writes.cuh"
#endif
#include "step.cuh"

GPUSIM_FN World item_world(const Arguments* a, double h, int id) {
    World w;
    w.a = a;
    w.h = h;
    w.id = id;
    w.tid = 0;
    w.threads = 1;
    w.base = a->slab + (long long)id * a->slab_bytes;
#if GPUSIM_GPU
    w.tile = ~0u;
    w.place = 0;
#endif
    return w;
}
#if GPUSIM_GPU
#define FIRST_ITEM ((long long)blockIdx.x * blockDim.x + threadIdx.x)
#define ITEM_STRIDE ((long long)gridDim.x * blockDim.x)
#define PARALLEL_ITEMS
#else
#define FIRST_ITEM 0
#define ITEM_STRIDE 1
#define GPUSIM_PRAGMA(text) _Pragma(#text)
#define PARALLEL_ITEMS GPUSIM_PRAGMA(omp parallel for num_threads(threads) if (threads > 1 && total > 1024))
#endif

#define STAGED(name, items, call)                                                                              \
    GPUSIM_KERNEL void staged_##name(const Arguments* a, double h, int condition, int level, int threads) {    \
        World w = item_world(a, h, 0);                                                                         \
        const int each = (items);                                                                              \
        const long long total = (long long)each * a->n_worlds;                                                 \
        (void)level; (void)threads;                                                                            \
        PARALLEL_ITEMS                                                                                         \
        for (long long item = FIRST_ITEM; item < total; item += ITEM_STRIDE) {                                 \
            /* Divisions of 64 bits take as long as a small phase. */                                          \
            const int id = a->n_worlds == 1 ? 0 : int(item / each);                                            \
            const World w = item_world(a, h, id);                                                              \
            const int i = int(item - (long long)id * each);                                                    \
            if (concerns(w, condition)) call;                                                                  \
        }                                                                                                      \
    }
// Manifolds of one list (a color or the overflow), of which each world has its own number.
#if GPUSIM_GPU
#define PER_LIST(name) STAGED(name, w.pairs(), if (i < list_size(w, level)) name(w, level, i))
#else
#define PER_LIST(name)                                                                                         \
    GPUSIM_KERNEL void staged_##name(const Arguments* a, double h, int condition, int level, int threads) {    \
        for (int id = 0; id < a->n_worlds; ++id) {                                                             \
            const World w = item_world(a, h, id);                                                              \
            if (!concerns(w, condition)) continue;                                                             \
            const int total = list_items(w, level);                                                             \
            (void)threads;                                                                                     \
            PARALLEL_ITEMS                                                                                     \
            for (int i = 0; i < total; ++i) name(w, level, i);                                                 \
        }                                                                                                      \
    }
#endif
// Worlds side by side, each by one block from beginning to end.
#if GPUSIM_GPU
#define FIRST_WORLD blockIdx.x
#define WORLD_STRIDE gridDim.x
#define BLOCK_TID int(threadIdx.x)
#define BLOCK_THREADS int(blockDim.x)
#define PARALLEL_WORLDS
#else
#define FIRST_WORLD 0
#define WORLD_STRIDE 1
#define BLOCK_TID 0
#define BLOCK_THREADS 1
#define PARALLEL_WORLDS GPUSIM_PRAGMA(omp parallel for num_threads(threads) if (threads > 1 && a->n_worlds > 1))
#endif
#define PER_WORLD(name, call)                                                                                  \
    GPUSIM_KERNEL void staged_##name(const Arguments* a, double h, int condition, int level, int threads) {    \
        (void)condition; (void)level; (void)threads;                                                           \
        PARALLEL_WORLDS                                                                                        \
        for (int id = FIRST_WORLD; id < a->n_worlds; id += WORLD_STRIDE) {                                     \
            World w = item_world(a, h, id);                                                                    \
            w.tid = BLOCK_TID;                                                                                 \
            w.threads = BLOCK_THREADS;                                                                         \
            call(w);                                                                                           \
            w.sync();                                                                                          \
        }                                                                                                      \
    }
// The ends of the lists by one block a world: what has no color, at level max_colors, or the colors from level on, of which
// there are none as a rule.
#define LIST_ENDS(name, add)                                                                                   \
    GPUSIM_PHASE void name##_in_turn(const World& w, int list) {                                               \
        RUN(list_items(w, list), name(w, list, i));                                                            \
    }                                                                                                          \
    GPUSIM_KERNEL void staged_##name##_ends(const Arguments* a, double h, int condition, int level, int threads) { \
        (void)threads;                                                                                         \
        PARALLEL_WORLDS                                                                                        \
        for (int id = FIRST_WORLD; id < a->n_worlds; id += WORLD_STRIDE) {                                     \
            World w = item_world(a, h, id);                                                                    \
            w.tid = BLOCK_TID;                                                                                 \
            w.threads = BLOCK_THREADS;                                                                         \
            const bool rest = level < w.max_colors();                                                          \
            if (!concerns(w, condition) || !(rest || overflow_size(w))) continue;                              \
            for (int list = level; list < (rest ? w.max_colors() : level + 1); ++list)                         \
                if (list_size(w, list)) name##_in_turn(w, list);                                               \
            if (!rest) RUN(w.bodies(), add(w, i));                                                             \
        }                                                                                                      \
    }
// Whole worlds one after another, each by all threads of the launch (WHOLE), are loaded and stored.
#define PER(name, items) STAGED(name, items, name(w, i))
#define PER_LEVEL(name, items) STAGED(name, items, name(w, level, i))

#define WHOLE(name)                                                                                            \
    GPUSIM_KERNEL void staged_##name(const Arguments* a, double h, int condition, int level, int threads) {    \
        (void)condition; (void)level; (void)threads;                                                           \
        for (int id = 0; id < a->n_worlds; ++id) {                                                             \
            World w = item_world(a, h, id);                                                                    \
            w.tid = int(FIRST_ITEM);                                                                           \
            w.threads = int(ITEM_STRIDE);                                                                      \
            name(w);                                                                                           \
        }                                                                                                      \
    }

GPUSIM_PHASE void set_forward(const World& w, int trial, int) { *w.forward_only() = trial; }
// Does any world still correct?
GPUSIM_PHASE void tell_active(const World& w, int) {
    if (*w.passes_left() > 0) set_flag(in_global(w.args()->active));
}
GPUSIM_PHASE void conclude(const World& w, int) {
    if (*w.cause() != NO_AXIS && !in_global(w.args()->health)[w.id]) report_failure(w);
}
GPUSIM_PHASE void store_healthy(const World& w) {
    if (!in_global(w.args()->health)[w.id]) store_state(w);
}
#include "entries.cuh"
