// Step of one world in one block (fused launch). gpusim generates order.cuh from gpusim/solver/schedule.py.
#pragma once
#include "world.cuh"
#include "kinds.cuh"
#include "joints/prepare.cuh"
#include "joints/kick.cuh"
#include "solve/direct_solve.cuh"
#include "solve/self_stress.cuh"
#include "solve/colored_solve.cuh"
#include "contacts/contact_newton.cuh"
#include "solve/contact_direct.cuh"
#include "contacts/contact_follow.cuh"
#include "contacts/contact_push.cuh"
#include "solve/relax.cuh"
#include "joints/ropes.cuh"
#include "signals/sense.cuh"
#include "contacts/narrow_phase.cuh"
#include "contacts/seams.cuh"
#include "joints/forward.cuh"
#include "health.cuh"

// Distribute the items of a phase over the threads of the block, and wait for all threads.
#define RUN(count, call)                                              \
    do {                                                              \
        const int count_ = (count);                                   \
        if (!count_) break;                                           \
        GPUSIM_ROLLED                                                 \
        GPUSIM_ITEMS(count_, w.tid, w.threads) call;                  \
        w.sync();                                                     \
    } while (0)
// Run a phase over the lists of manifolds: first the overflow, then one color after another.
#define RUN_LISTS(phase, add)                                         \
    do {                                                              \
        if (overflow_size(w)) {                                       \
            RUN(list_items(w, w.max_colors()), phase(w, w.max_colors(), i)); \
            RUN(w.bodies(), add(w, i));                               \
        }                                                             \
        GPUSIM_ROLLED                                                 \
        for (int list = 0; list < w.max_colors(); ++list)             \
            RUN(list_items(w, list), phase(w, list, i));              \
    } while (0)

// The direct solver solves articulated manifolds one after another. All threads work on one manifold.
#if GPUSIM_DIRECT && GPUSIM_SHAPES
GPUSIM_PHASE void sweep_articulated_contacts(const World& w) {
    GPUSIM_ROLLED
    for (int n = 0; n < articulated_size(w); ++n) {
        const int m = articulated_member(w, n);
        if (solved_by_newton(w, n)) continue;
        sum_path(w, n, w.path_part());
        RUN(1, sweep_articulated(w, m, n));
        update_path(w, n, w.path_wrench());
    }
}
GPUSIM_PHASE void push_articulated_contacts(const World& w) {
    GPUSIM_ROLLED
    for (int n = 0; n < articulated_size(w); ++n) {
        const int m = articulated_member(w, n);
        sum_path(w, n, w.path_part());
        RUN(1, push_articulated(w, m, n));
        update_path(w, n, w.path_wrench());
    }
}
GPUSIM_PHASE void warm_articulated_contacts(const World& w) {
    GPUSIM_ROLLED
    for (int n = 0; n < articulated_size(w); ++n) RUN(1, warm_articulated(w, articulated_member(w, n)));
}
// Solve the contacts of each island by Newton's method.
GPUSIM_FN void solve_island(const World& w, int number) {
    const Island e = island_at(w, number);
    const int first = w.island_slot()[number], end = w.island_slot()[number + 1];
    GPUSIM_ROLLED
    for (int n = first; n < end; ++n) {
        const int path = path_of(w, n);
        if (path >= 0) sum_path(w, path, condensed_part(w, n - first));
    }
    RUN(end - first, start_condensed(w, e, first, i));
    RUN(e.end - e.first, project_number(w, e, i));
    RUN(1, start_newton(w, e));
    GPUSIM_ROLLED
    while (true) {
        RUN(1, judge_newton(w, e));
        if (*w.newton_remaining() <= 0) break;
        const int unknowns = *w.newton_unknowns();
        RUN(unknowns, set_equation(w, e, i));
        GPUSIM_ROLLED
        for (int k = 0; k < unknowns; ++k) RUN(rows_below(unknowns, k), eliminate_number(w, unknowns, k, i));
        GPUSIM_ROLLED
        for (int k = unknowns; k-- > 0;) RUN(k + 1, substitute_number(w, e, unknowns, k, i));
        RUN(condensed_items(e), move_numbers(w, e, i));
        GPUSIM_ROLLED
        while (*w.newton_trials() > 0) {
            RUN(e.end - e.first, project_number(w, e, i));
            RUN(1, judge_trial(w, e));
        }
        RUN(e.end - e.first, take_step(w, e, i));
    }
    if (w.island_failed()[number]) return;
    RUN(end - first, store_condensed(w, first, i));
    GPUSIM_ROLLED
    for (int n = first; n < end; ++n) {
        const int path = path_of(w, n);
        RUN(1, move_condensed(w, first, n - first));
        if (path >= 0) update_path(w, path, condensed_part(w, n - first));
    }
}
GPUSIM_PHASE void solve_condensed_contacts(const World& w) {
    GPUSIM_ROLLED
    for (int number = 0; number < *w.island_count(); ++number) solve_island(w, number);
    RUN(1, end_newton(w));
}
#endif
#include "order.cuh"

GPUSIM_PHASE void clear_rows(const World& w) {
    GPUSIM_ROLLED
    for (int i = w.tid; i < w.sides() * w.block() * 6; i += w.threads) w.jacobian()[i] = real(0);
    GPUSIM_ROLLED
    for (int i = w.tid; i < w.rows(); i += w.threads) w.bias()[i] = real(0);
    GPUSIM_ROLLED
    for (int i = w.tid; i < w.overflow_sides() * 6; i += w.threads) w.overflow_change()[i] = real(0);
}
GPUSIM_PHASE void begin(const World& w, int trial) {
    clear_rows(w);
    if (w.tid == 0) *w.forward_only() = trial;
    load_state(w);
    w.sync();
}
// Run steps of one world. If the world fails, restore its last good state and set its health word.
GPUSIM_PHASE void run_world(const World& w, int steps) {
    if (in_global(w.args()->health)[w.id]) return;
    begin(w, 0);
    for (int step = 0; step < steps; ++step) {
        contacts(w);
        for (int k = 0; k < w.substeps(); ++k) substep(w);
        store_contacts(w);
        check(w);
        if (*w.cause() != NO_AXIS) {
            if (w.tid == 0) report_failure(w);
            return;
        }
        store_state(w);
        w.sync();
    }
}
// Compute forces in a trial substep. In the state, only joint angles (full rotations) and gear offsets change.
GPUSIM_PHASE void forward_world(const World& w) {
    begin(w, 1);
    contacts(w);
    impulses(w);
    forward(w);
}
// Compute rotation matrices and joint angles (with full rotations) at the current poses.
GPUSIM_PHASE void pose_world(const World& w) {
    begin(w, 1);
    pose(w);
}
