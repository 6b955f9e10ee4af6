// Staged launch, for large worlds. A kernel runs a phase (for a level or color) over all items of all worlds. gpusim
// generates entries.cuh from gpusim/solver/schedule.py.
#include "math/platform.cuh"
#if !GPUSIM_GPU  // a GPU has a separate build for signals and writes, signals.cu
#include "signals/writes.cuh"
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
    w.slab_offset = 0;
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
// Threads take small chunks of items, because in many phases only the first items have work.
#define PARALLEL_ITEMS                                                                              \
    GPUSIM_PRAGMA(omp parallel for schedule(static, 4) num_threads(threads) if (threads > 1 && work > MIN_WORK))
// Minimum work for which several threads save time, in the unit of Phase.work (solver/nodes.py).
constexpr long long MIN_WORK = 512;
#endif

#define STAGED(name, items, each_work, call)                                                                   \
    GPUSIM_KERNEL void staged_##name(const Arguments* a, double h, int condition, int level, int threads) {    \
        World w = item_world(a, h, 0);                                                                         \
        const int each = (items);                                                                              \
        const long long total = (long long)each * a->n_worlds;                                                 \
        const long long work = total * (each_work);                                                            \
        (void)level; (void)threads; (void)work;                                                                \
        PARALLEL_ITEMS                                                                                         \
        for (long long item = FIRST_ITEM; item < total; item += ITEM_STRIDE) {                                 \
            const int id = a->n_worlds == 1 ? 0 : world_of(item, each);                                        \
            const World w = item_world(a, h, id);                                                              \
            const int i = int(item - (long long)id * each);                                                    \
            if (concerns(w, condition)) call;                                                                  \
        }                                                                                                      \
    }
// One block runs all items of a world.
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
// Several blocks per world run lists of manifolds (RUN_LISTS) and other phases with tickets.
#if GPUSIM_GPU
#define WITH_TICKETS(name, call)                                                                                   \
    GPUSIM_KERNEL void staged_##name(const Arguments* a, double h, int condition, int level, int threads) {    \
        (void)level; (void)threads;                                                                            \
        World w = item_world(a, h, int(blockIdx.x) % a->n_worlds);                                             \
        w.tid = int(threadIdx.x);                                                                              \
        w.threads = int(blockDim.x);                                                                           \
        if (!concerns(w, condition)) return;                                                                   \
        call;                                                                                                  \
        leave_tickets(w, int(gridDim.x) / a->n_worlds);                                                          \
    }
// Parts of a launch with tickets. The items of a part wait for all earlier parts.
struct Parts {
    const World& w;
    int ticket, end;
    MEMBER explicit Parts(const World& world) : w(world), ticket(draw_ticket(world)), end(0) {}
    // A ticket contains one item for each thread of the block.
    template <class F> MEMBER void run(int items, F call) {
        const int first = end;
        end += (items + w.threads - 1) / w.threads;
        while (ticket < end) {
            await_tickets(w, first);
            const int i = (ticket - first) * w.threads + w.tid;
            if (i < items) call(i);
            end_ticket(w);
            ticket = draw_ticket(w);
        }
    }
};
#define LISTS(name, add)                                                                                       \
    GPUSIM_PHASE void name##_lists(const World& w) {                                                           \
        Parts parts(w);                                                                                        \
        run_lists(parts, w, [&](int list, int i) { name(w, list, i); }, [&](int b) { add(w, b); });            \
    }                                                                                                          \
    WITH_TICKETS(name, name##_lists(w))
#else
#define WITH_TICKETS(name, call)                                                                                   \
    GPUSIM_KERNEL void staged_##name(const Arguments* a, double h, int condition, int level, int threads) {    \
        (void)level; (void)threads;                                                                            \
        for (int id = 0; id < a->n_worlds; ++id) {                                                             \
            const World w = item_world(a, h, id);                                                              \
            if (!concerns(w, condition)) continue;                                                             \
            clear_tickets(w);                                                                                    \
            GPUSIM_PRAGMA(omp parallel num_threads(threads) if (threads > 1)) { call; }                        \
        }                                                                                                      \
    }
// The threads of a team share the items of each part. A barrier follows each part.
struct Parts {
    explicit Parts(const World&) {}
    template <class F> void run(int items, F call) {
        GPUSIM_PRAGMA(omp for)
        for (int i = 0; i < items; ++i) call(i);
    }
};
#define LISTS(name, add)                                                                                       \
    static void name##_list(const World& w, int list, int threads) {                                           \
        const int total = list_items(w, list), work = 4 * ITEM_LANES * total;                                  \
        (void)threads;                                                                                         \
        PARALLEL_ITEMS                                                                                         \
        for (int i = 0; i < total; ++i) name(w, list, i);                                                      \
    }                                                                                                          \
    GPUSIM_KERNEL void staged_##name(const Arguments* a, double h, int condition, int level, int threads) {    \
        (void)level;                                                                                           \
        for (int id = 0; id < a->n_worlds; ++id) {                                                             \
            const World w = item_world(a, h, id);                                                              \
            if (!concerns(w, condition)) continue;                                                             \
            const int total = overflow_size(w) ? w.bodies() : 0, work = total;                                 \
            name##_list(w, w.max_colors(), threads);                                                           \
            PARALLEL_ITEMS                                                                                     \
            for (int b = 0; b < total; ++b) add(w, b);                                                         \
            for (int list = 0; list < w.max_colors(); ++list) name##_list(w, list, threads);                   \
        }                                                                                                      \
    }
#endif
#define TICKETS(name) WITH_TICKETS(name, name(w))
// Run a phase over the lists of manifolds: the overflow, the sums over bodies, then one color after another.
template <class F, class G> GPUSIM_FN void run_lists(Parts& parts, const World& w, F call, G add) {
    parts.run(list_items(w, w.max_colors()), [&](int i) { call(w.max_colors(), i); });
    parts.run(overflow_size(w) ? w.bodies() : 0, add);
    GPUSIM_ROLLED
    for (int list = 0; list < w.max_colors(); ++list) parts.run(list_items(w, list), [&](int i) { call(list, i); });
}
// WHOLE copies one world after another. All threads of the launch copy a world together.
#define PER(name, items, work) STAGED(name, items, work, name(w, i))
#define PER_LEVEL(name, items, work) STAGED(name, items, work, name(w, level, i))

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

GPUSIM_PHASE void set_forward(const World& w, int trial, int) {
    *w.forward_only() = trial;
    clear_tickets(w);
}
// Set the flag ``active`` if a world has remaining passes.
GPUSIM_PHASE void publish_active(const World& w, int) {
    if (*w.passes_remaining() > 0) set_flag(in_global(w.args()->active));
}
GPUSIM_PHASE void conclude(const World& w, int) {
    if (*w.cause() != NO_AXIS && !in_global(w.args()->health)[w.id]) report_failure(w);
}
GPUSIM_PHASE void store_healthy(const World& w) {
    if (!in_global(w.args()->health)[w.id]) store_state(w);
}
#include "entries.cuh"
