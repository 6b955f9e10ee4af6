// Staged launch: one kernel for each phase (and level or color) over all items of all worlds, for big worlds. The order
// is in gpusim/backends/staged.py; the phases are those of the fused launch.
#include "writes.cuh"
#include "step.cuh"

GPUSIM_FN World item_world(const Arguments* a, double h, int id) {
    World w;
    w.a = a;
    w.h = h;
    w.id = id;
    w.tid = 0;
    w.threads = 1;
    w.base = a->slab + (long long)id * a->slab_bytes;
    return w;
}
// Which worlds a launch concerns (gpusim/backends/staged.py).
GPUSIM_FN bool concerns(const World& w, int condition) {
    if (condition == ACTIVE) return *w.left() > 0;
    if (condition == AGAIN) return *w.left() > 0 && *w.again();
    if (condition == SWEEPING) return !*w.done();
    if (condition == REFRESHING) return *w.left() > 0 && !*w.hold();
    if (condition == SEARCHING) return *w.searching() != 0;
    if (condition == TOUCHING) return touches(w);
    if (condition == PRESSING) return touches(w) && !*w.done();
    if (condition == SETTLING) return *w.settling() != 0;
    return condition == CORRECTING ? *w.correcting() != 0 : true;
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
            const World w = item_world(a, h, int(item / each));                                                \
            const int i = int(item % each);                                                                    \
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
#define PER(name, items) STAGED(name, items, name(w, i))
#define PER_LEVEL(name, items) STAGED(name, items, name(w, level, i))

GPUSIM_PHASE void set_trial(const World& w, int trial, int) { *w.trial() = trial; }
#if GPUSIM_SHAPES
PER(start_search, 1)
PER(place_shape, w.touchable())
PER(widen_shape, w.touchable())
PER(find_near, w.touchable())
PER(clear_bucket, w.bucket_places())
PER(count_member, w.touchable())
PER(scan_bucket_part, PARTS)
PER(scan_sums, 1)
PER(scan_bucket_rest, PARTS)
PER(enter_bucket, w.touchable())
PER(sort_bucket, w.buckets() + 1)
PER(count_pairs, w.places())
PER(scan_pair_part, PARTS)
PER(scan_pair_rest, PARTS)
PER(list_pairs, w.touchable())
PER(count_close, 1)
PER(meet_pair, w.pairs())
PER(clear_colors, w.bodies())
PER(color_pairs, 1)
PER(list_colors, 1)
PER(list_overflow, 1)
PER(clear_meetings, w.meeting_places())
PER(count_meetings, w.pairs())
PER(scan_meeting_part, PARTS)
PER(scan_meeting_rest, PARTS)
PER(enter_meetings, w.pairs())
PER(find_ready, w.pairs())
PER(color_ready_pair, w.pairs())
PER(color_rest, 1)
PER(count_colors, PARTS)
PER(start_colors, 1)
PER(place_colors, PARTS)
PER(load_pair, w.record_places() / ITEM_LANES)
PER(follow_shape, w.touchable())
PER(follow_pair, w.record_places() / ITEM_LANES)
PER(prepare_pair, w.record_places() / ITEM_LANES)
PER(start_contact_sweeps, 1)
PER(middle_body, w.bodies())
PER(aim_pair, w.record_places() / ITEM_LANES)
PER_LIST(warm_contact)
PER_LIST(sweep_contact)
PER(add_contact_parts, w.bodies())
PER(end_contact_sweep, 1)
PER(start_course_body, w.bodies() * 6)
PER(start_course_sum, 1)
PER(start_course_pair, w.record_places() / ITEM_LANES)
PER(sum_squares, PARTS)
PER(choose_share, 1)
PER(go_on_pair, w.record_places() / ITEM_LANES)
PER(go_on_body, w.bodies() * 6)
PER(skip_solve, 1)
PER(slip_pair, w.record_places() / ITEM_LANES)
PER(settle_pair, w.record_places() / ITEM_LANES)
PER(store_pair, w.record_places() / ITEM_LANES)
#endif
PER_LEVEL(set_trial, 1)
PER(start_settle, 1)
PER(find_axis_impact, w.axes())
PER(enter_settle, 1)
PER(store_velocity, w.bodies())
PER(store_rate, w.axes())
PER(set_times, 1)
PER(rotate_body, w.bodies())
PER(track_angle, w.angles())
PER(evaluate_element, w.elements())
PER(couple, w.couplings())
PER(stiffen_body, w.bodies())
PER(mass_row, w.sides() * w.block())
PER(axis_rates, w.axes())
PER(push_body, w.bodies())
PER(contribute, w.shares())
PER(sum_law, w.axes())
PER(bound_law, w.axes())
PER(kick_body, w.bodies())
PER(bend_body, w.bodies())
PER(bend_element, w.elements())
PER(bend_coupling, w.couplings())
PER(next_rate, w.axes())
PER(refresh, w.shares())

#if GPUSIM_DIRECT
PER(product_entry, block_items(w, w.blocks()))
PER(start_row, w.rows())
PER(start_axis, w.axes())
PER(start_passes, 1)
PER(scale_row, w.rows())
PER(scale_entry, block_items(w, w.blocks()))
PER_LEVEL(invert_pivot, level_pivots(w, level))
PER_LEVEL(divide_entry, block_items(w, level_edges(w, level)))
PER_LEVEL(update_entry, block_items(w, level_targets(w, level)))
PER(residual_row, w.rows())
PER(guard, 1)
PER(guard_body, w.bodies() * 6)
PER(guard_row, w.rows())
PER(scale_right, w.rows())
PER_LEVEL(forward_row, level_rows(w, level) * w.block())
PER(divide_row, w.rows())
PER_LEVEL(backward_row, level_pivots(w, level) * w.block())
PER(scale_change, w.rows())
PER(correct_row, w.rows())
PER(correct_body, w.bodies())
PER(count_pass, 1)
// Worlds that take part in this pass, though they may be done after it.
GPUSIM_PHASE void mark_pass(const World& w, int) { *w.correcting() = *w.left() > 0; }
PER(mark_pass, 1)
PER(want_mode, w.axes())
PER(switch_mode, w.axes())
PER(end_refit, 1)
PER(plan_bias, 1)
PER_WORLD(solve_world, solve)
PER_WORLD(settle_world, settle)
PER(split_row, w.rows())
PER(split_body, w.bodies())
PER(error_row, w.rows())
PER(shift_body, w.bodies())
#else
PER(prepare_constraint, w.constraints())
PER(warm_row, w.rows())
PER(warm_body, w.bodies())
PER(start_sweeps, 1)
PER(sweep_overflow, w.overflow_constraints())
PER(add_overflow, w.bodies())
PER_LEVEL(sweep_color, color_size(w, level))
PER(end_sweep, 1)
PER(left_row, w.rows())
PER(correct_overflow, w.overflow_constraints())
PER(move_overflow, w.bodies())
PER_LEVEL(correct_color, color_size(w, level))
PER(clear_displacement, w.bodies() * 6)
PER(split_overflow, w.overflow_constraints())
PER(split_overflow_body, w.bodies())
PER_LEVEL(split_color, color_size(w, level))
#endif
PER(end_solve, 1)

PER(displace_body, w.bodies())
PER(commit_actuator, w.actuators())
PER(commit_control, w.controls())
PER(drift_body, w.bodies())
PER(store_row, w.rows())
PER(store_axis, w.axes())
PER(store_times, 1)
PER(turn_body, w.bodies())
PER(sense_share, w.shares())
PER(keep_angle, w.angles())
PER(keep_offset, w.couplings())
PER(start_check, 1)
PER(check_body, w.bodies())
PER(check_actuator, w.actuators())
PER(check_start, w.bodies())

#if GPUSIM_DIRECT
// Does any world still correct?
GPUSIM_PHASE void tell_active(const World& w, int) {
    if (*w.left() > 0) set_flag(w.a->active);
}
PER(tell_active, 1)
#endif
GPUSIM_PHASE void conclude(const World& w, int) {
    if (*w.culprit() != NO_AXIS && !w.a->health[w.id]) report_failure(w);
}
PER(conclude, 1)

// Whole worlds one after another, each by all threads of the launch.
#define WHOLE(name, call)                                                                                      \
    GPUSIM_KERNEL void staged_##name(const Arguments* a, double h, int condition, int level, int threads) {    \
        (void)condition; (void)level; (void)threads;                                                           \
        for (int id = 0; id < a->n_worlds; ++id) {                                                             \
            World w = item_world(a, h, id);                                                                    \
            w.tid = int(FIRST_ITEM);                                                                           \
            w.threads = int(ITEM_STRIDE);                                                                      \
            call;                                                                                              \
        }                                                                                                      \
    }
WHOLE(clear_rows, clear_rows(w))
WHOLE(load_state, load_state(w))
WHOLE(store_state, if (!a->health[id]) store_state(w))
