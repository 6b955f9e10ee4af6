// The whole step of one world by one block (fused launch): the stages of gpusim/solver/step.py in their order.
#pragma once
#include "world.cuh"
#include "kinds.cuh"
#include "prepare.cuh"
#include "kick.cuh"
#include "direct_solve.cuh"
#include "colored_solve.cuh"
#include "contact_direct.cuh"
#include "contact_follow.cuh"
#include "settle.cuh"
#include "narrow_phase.cuh"
#include "sense.cuh"
#include "health.cuh"

// Items of a phase spread over the block's threads; the next phase sees what all of them wrote.
#define RUN(count, call)                                              \
    do {                                                              \
        const int count_ = (count);                                   \
        GPUSIM_ROLLED                                                 \
        GPUSIM_ITEMS(count_, w.tid, w.threads) call;                  \
        w.sync();                                                     \
    } while (0)

// Stages collide and color, once a step: pairs of shapes, where they touch, and which manifolds go side by side.
GPUSIM_PHASE void search_pairs(const World& w) {
    RUN(1, start_search(w, i));
    RUN(w.touchable(), place_shape(w, i));
    if (w.buckets() && *w.searching()) {
        RUN(w.touchable(), widen_shape(w, i));
        RUN(w.bucket_places(), clear_bucket(w, i));
        RUN(w.touchable(), count_member(w, i));
        RUN(PARTS, scan_bucket_part(w, i));
        RUN(1, scan_sums(w, i));
        RUN(PARTS, scan_bucket_rest(w, i));
        RUN(w.touchable(), enter_bucket(w, i));
        RUN(w.buckets() + 1, sort_bucket(w, i));
        RUN(w.touchable(), find_near(w, i));
    }
    RUN(w.places(), count_pairs(w, i));
    RUN(PARTS, scan_pair_part(w, i));
    RUN(1, scan_sums(w, i));
    RUN(PARTS, scan_pair_rest(w, i));
    RUN(w.touchable(), list_pairs(w, i));
    RUN(1, count_close(w, i));
}
GPUSIM_PHASE void collide_and_color(const World& w) {
    if (!GPUSIM_SHAPES || !w.pairs()) return;
    RUN(w.bodies(), turn_body(w, i));
    search_pairs(w);
    RUN(w.pairs(), meet_pair(w, i));
    RUN(w.bodies(), clear_colors(w, i));
    RUN(1, color_pairs(w, i));
    RUN(1, list_colors(w, i));
    RUN(1, list_overflow(w, i));
    RUN(record_items(w), load_pair(w, i));
}
// Lists of manifolds in the order of a sweep: the overflow together, then one color after another.
#define SWEEP_LISTS(phase, add)                                       \
    do {                                                              \
        if (overflow_size(w)) {                                       \
            RUN(list_items(w, w.max_colors()), phase(w, w.max_colors(), i)); \
            RUN(w.bodies(), add(w, i));                               \
        }                                                             \
        GPUSIM_ROLLED                                                 \
        for (int list = 0; list < w.max_colors(); ++list)             \
            if (list_size(w, list)) RUN(list_items(w, list), phase(w, list, i)); \
    } while (0)

GPUSIM_PHASE void prepare(const World& w) {
    RUN(1, set_times(w, i));
    RUN(w.bodies(), rotate_body(w, i));
    RUN(w.angles(), track_angle(w, i));
    RUN(w.elements(), evaluate_element(w, i));
    if (w.couplings()) RUN(w.couplings(), couple(w, i));
    if (w.geometric_stiffness()) RUN(w.bodies(), stiffen_body(w, i));
    RUN(w.sides() * w.block(), mass_row(w, i));
    RUN(w.axes(), axis_rates(w, i));
    if (!GPUSIM_SHAPES || !w.pairs()) return;
    if (follows(w)) {
        RUN(w.touchable(), follow_shape(w, i));
        RUN(record_items(w), follow_pair(w, i));
    }
    RUN(record_items(w), prepare_pair(w, i));
}
GPUSIM_PHASE void actuate(const World& w) {
    RUN(w.bodies(), push_body(w, i));
    RUN(w.shares(), contribute(w, i));
    RUN(w.axes(), (sum_law(w, i), bound_law(w, i)));
}
GPUSIM_PHASE void curvature(const World& w) {
    if (w.papers()) return;
    RUN(w.bodies(), bend_body(w, i));
    RUN(w.elements(), bend_element(w, i));
    if (w.couplings()) RUN(w.couplings(), bend_coupling(w, i));
}
// Laws refitted to the newest velocities.
GPUSIM_PHASE void refit(const World& w) {
    RUN(w.axes(), next_rate(w, i));
    RUN(w.shares(), refresh(w, i));
    RUN(w.axes(), sum_law(w, i));
}
GPUSIM_PHASE void factorize(const World& w) {
    RUN(w.rows(), scale_row(w, i));
    RUN(block_items(w, w.blocks()), scale_entry(w, i));
    GPUSIM_ROLLED
    for (int level = 0; level < w.levels(); ++level) {
        RUN(level_pivots(w, level), invert_pivot(w, level, i));
        RUN(block_items(w, level_edges(w, level)), divide_entry(w, level, i));
        RUN(block_items(w, level_targets(w, level)), update_entry(w, level, i));
    }
}
// change = A^-1 right.
GPUSIM_PHASE void solve_factored(const World& w) {
    RUN(w.rows(), scale_right(w, i));
    GPUSIM_ROLLED
    for (int level = 0; level < w.levels(); ++level) RUN(level_rows(w, level) * w.block(), forward_row(w, level, i));
    RUN(w.rows(), divide_row(w, i));
    GPUSIM_ROLLED
    for (int level = w.levels() - 1; level >= 0; --level)
        RUN(level_pivots(w, level) * w.block(), backward_row(w, level, i));
    RUN(w.rows(), scale_change(w, i));
}
// The joints' answer to the motion of a manifold's sides: change of their impulses.
GPUSIM_PHASE void answer(const World& w, int m) {
    RUN(w.rows(), answer_row(w, m, i));
    solve_factored(w);
}
GPUSIM_PHASE void respond_jointed(const World& w) {
    GPUSIM_ROLLED
    for (int n = 0; n < jointed_size(w); ++n) {
        const int m = jointed_member(w, n);
        GPUSIM_ROLLED
        for (int j = 0; j < 6; ++j) {
            RUN(1, unit_motion(w, m, j));
            answer(w, m);
            RUN(1, respond_column(w, m, j));
        }
        RUN(1, respond_points(w, m));
    }
}
GPUSIM_PHASE void sweep_jointed_contacts(const World& w) {
    GPUSIM_ROLLED
    for (int n = 0; n < jointed_size(w); ++n) {
        const int m = jointed_member(w, n);
        RUN(1, sweep_jointed(w, m));
        if (!*w.answering()) continue;
        answer(w, m);
        RUN(w.rows(), correct_row(w, i));
        RUN(w.bodies(), correct_body(w, i));
    }
}
// The course of the sweeps goes on where it went (conjugate gradients).
GPUSIM_PHASE void start_course(const World& w) {
    RUN(1, start_course_sum(w, i));
    if (w.iterations() == 1) return;  // no sweep goes on
    RUN(w.bodies() * 6, start_course_body(w, i));
    RUN(record_items(w), start_course_pair(w, i));
    RUN(w.rows(), start_course_row(w, i));
}
GPUSIM_PHASE void go_on(const World& w) {
    RUN(PARTS, sum_squares(w, i));
    RUN(1, choose_share(w, i));
    RUN(record_items(w), go_on_pair(w, i));
    RUN(w.bodies() * 6, go_on_body(w, i));
    RUN(w.rows(), go_on_row(w, i));
}
// Contacts for the velocities that the joint rows have left.
GPUSIM_PHASE void sweep_contacts(const World& w) {
    start_course(w);
    GPUSIM_ROLLED
    for (int sweep = 0; sweep < w.iterations(); ++sweep) {
        if (sweep) go_on(w);
        SWEEP_LISTS(sweep_contact, add_contact_parts);
        if (w.direct()) sweep_jointed_contacts(w);
        RUN(1, end_contact_sweep(w, i));
        if (*w.done()) break;
    }
}
GPUSIM_PHASE void start_contacts(const World& w) {
    RUN(1, start_contact_sweeps(w, i));
    if (finds_middle(w)) RUN(w.bodies(), middle_body(w, i));
    RUN(record_items(w), aim_pair(w, i));
    SWEEP_LISTS(warm_contact, add_contact_parts);
    GPUSIM_ROLLED
    for (int n = 0; w.direct() && n < jointed_size(w); ++n) RUN(1, warm_jointed(w, jointed_member(w, n)));
}
GPUSIM_PHASE void direct_passes(const World& w) {
    while (*w.left() > 0) {
        if (*w.again()) {
            factorize(w);
            if (touches(w)) respond_jointed(w);
        }
        if (!*w.hold()) curvature(w);
        RUN(w.rows(), residual_row(w, i));
        RUN(1, guard(w, i));
        RUN(w.bodies() * 6, guard_body(w, i));
        RUN(w.rows(), guard_row(w, i));
        if (touches(w)) RUN(*w.pair_count(), guard_pair(w, i));
        if (*w.left() <= 0) break;
        solve_factored(w);
        RUN(w.rows(), correct_row(w, i));
        RUN(w.bodies(), correct_body(w, i));
        RUN(1, count_pass(w, i));
        if (touches(w)) sweep_contacts(w);
        if (w.axes()) {
            refit(w);
            RUN(w.axes(), want_mode(w, i));
            RUN(w.axes(), switch_mode(w, i));
            RUN(1, end_refit(w, i));
        }
        RUN(1, plan_bias(w, i));
    }
}
GPUSIM_PHASE void direct_solve(const World& w) {
    RUN(block_items(w, w.blocks()), product_entry(w, i));
    RUN(w.rows(), start_row(w, i));
    RUN(w.axes(), start_axis(w, i));
    RUN(1, start_passes(w, i));
    if (touches(w)) {
        // How far a point gives way goes by its mass, which those on jointed bodies have from the factor.
        if (jointed_size(w)) {
            factorize(w);
            respond_jointed(w);
            RUN(1, keep_factor(w, i));
        }
        // The bias is that of the kicked velocities; a foot alone would fly off with its warm start.
        curvature(w);
        RUN(1, hold_bias(w, i));
        start_contacts(w);
    }
    direct_passes(w);
    curvature(w);
    RUN(w.axes(), next_rate(w, i));
    RUN(w.rows(), residual_row(w, i));
    RUN(1, end_solve(w, i));
}
// Sweeps over joints and contacts until they converge.
GPUSIM_PHASE void sweeps(const World& w) {
    GPUSIM_ROLLED
    for (int sweep = 0; sweep < w.iterations() && !*w.done(); ++sweep) {
        if (sweep > 0 && sweep <= REFITS && w.axes()) refit(w);
        if (w.overflow_constraints()) {
            RUN(w.overflow_constraints(), sweep_overflow(w, i));
            RUN(w.bodies(), add_overflow(w, i));
        }
        GPUSIM_ROLLED
        for (int color = 0; color < w.colors(); ++color) RUN(color_size(w, color), sweep_color(w, color, i));
        if (touches(w)) SWEEP_LISTS(sweep_contact, add_contact_parts);
        RUN(1, end_sweep(w, i));
    }
}
GPUSIM_PHASE void colored_solve(const World& w) {
    curvature(w);
    RUN(w.constraints(), prepare_constraint(w, i));
    RUN(w.rows(), warm_row(w, i));
    RUN(w.bodies(), warm_body(w, i));
    if (touches(w)) start_contacts(w);
    RUN(1, start_sweeps(w, i));
    sweeps(w);
    RUN(w.axes(), next_rate(w, i));
    RUN(w.rows(), left_row(w, i));
    RUN(1, end_solve(w, i));
}
// A world without joints has contacts at most.
GPUSIM_PHASE void free_solve(const World& w) {
    RUN(1, skip_solve(w, i));
    if (!touches(w)) return;
    start_contacts(w);
    sweep_contacts(w);
}
GPUSIM_PHASE void solve(const World& w) {
    if (!w.constraints()) free_solve(w);
    else if (w.direct()) direct_solve(w);
    else colored_solve(w);
}
GPUSIM_PHASE void split_impulses(const World& w) {
    if (w.direct()) {
        RUN(w.rows(), split_row(w, i));
        solve_factored(w);
        RUN(w.bodies(), split_body(w, i));
        return;
    }
    RUN(w.bodies() * 6, clear_displacement(w, i));
    GPUSIM_ROLLED
    for (int sweep = 0; sweep < w.iterations(); ++sweep) {
        if (w.overflow_constraints()) {
            RUN(w.overflow_constraints(), split_overflow(w, i));
            RUN(w.bodies(), split_overflow_body(w, i));
        }
        GPUSIM_ROLLED
    for (int color = 0; color < w.colors(); ++color) RUN(color_size(w, color), split_color(w, color, i));
    }
}
GPUSIM_PHASE void commit(const World& w) {
    RUN(w.actuators(), commit_actuator(w, i));
    RUN(w.controls(), commit_control(w, i));
}
GPUSIM_PHASE void drift(const World& w) {
    RUN(w.bodies(), drift_body(w, i));
    if (w.papers()) RUN(w.bodies(), displace_body(w, i));
    RUN(w.rows(), store_row(w, i));
    RUN(w.axes(), store_axis(w, i));
    if (touches(w)) RUN(record_items(w), slip_pair(w, i));
    RUN(1, store_times(w, i));
}
GPUSIM_PHASE void positions(const World& w) {
    RUN(w.bodies(), turn_body(w, i));
    if (w.direct()) {
        RUN(w.rows(), error_row(w, i));
        solve_factored(w);
        RUN(w.bodies(), shift_body(w, i));
        return;
    }
    GPUSIM_ROLLED
    for (int sweep = 0; sweep < POSITION_SWEEPS; ++sweep) {
        if (w.overflow_constraints()) {
            RUN(w.overflow_constraints(), correct_overflow(w, i));
            RUN(w.bodies(), move_overflow(w, i));
        }
        GPUSIM_ROLLED
    for (int color = 0; color < w.colors(); ++color) RUN(color_size(w, color), correct_color(w, color, i));
    }
}
// Velocities once more, from the impulses as they are.
GPUSIM_PHASE void resolve(const World& w) {
    if (!w.constraints()) {
        sweep_contacts(w);
    } else if (w.direct()) {
        RUN(w.axes(), refill_axis(w, i));
        RUN(1, resume_passes(w, i));
        direct_passes(w);
    } else {
        sweeps(w);
    }
    RUN(w.axes(), next_rate(w, i));
    RUN(w.bodies(), store_velocity(w, i));
    RUN(w.axes(), store_rate(w, i));
}
// Stage settle: velocities after overlaps were taken back, and after impacts on contacts and limits.
GPUSIM_PHASE void settle(const World& w) {
    RUN(1, start_settle(w, i));
    if (w.bounces()) RUN(w.axes(), find_axis_impact(w, i));
    if (touches(w)) RUN(record_items(w), settle_pair(w, i));
    if (*w.settling()) resolve(w);
}
GPUSIM_PHASE void impulses(const World& w) {
    prepare(w);
    actuate(w);
    RUN(w.bodies(), kick_body(w, i));
    solve(w);
}
GPUSIM_PHASE void substep(const World& w) {
    impulses(w);
    if (w.papers()) split_impulses(w);
    commit(w);
    drift(w);
    settle(w);  // before positions, which turn the rotations that momenta are worked out with
    if (!w.papers()) positions(w);
}
GPUSIM_PHASE bool healthy(const World& w) {
    RUN(1, start_check(w, i));
    RUN(w.bodies(), check_body(w, i));
    RUN(w.actuators(), check_actuator(w, i));
    RUN(w.bodies(), check_start(w, i));
    return *w.culprit() == NO_AXIS;
}
// Entries of the Jacobian that no row writes stay zero.
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
    if (w.tid == 0) *w.trial() = trial;
    load_state(w);
    w.sync();
}
// Steps of one world; a failed one stays at its last good state, with its health word set.
GPUSIM_PHASE void run_world(const World& w, int steps) {
    if (w.a->health[w.id]) return;
    begin(w, 0);
    for (int step = 0; step < steps; ++step) {
        collide_and_color(w);
        for (int k = 0; k < w.substeps(); ++k) substep(w);
        if (touches(w)) RUN(record_items(w), store_pair(w, i));
        if (!healthy(w)) {
            if (w.tid == 0) report_failure(w);
            return;
        }
        store_state(w);
        w.sync();
    }
}
// Forces over a tried kick; of the state only counted angles and the offsets of gears are kept.
GPUSIM_PHASE void sense_world(const World& w) {
    begin(w, 1);
    collide_and_color(w);
    impulses(w);
    RUN(w.shares(), sense_share(w, i));
    RUN(w.angles(), keep_angle(w, i));
    RUN(w.couplings(), keep_offset(w, i));
}
// Rotation matrices and counted angles at the current poses, for signals that need no velocities.
GPUSIM_PHASE void pose_world(const World& w) {
    begin(w, 1);
    RUN(w.bodies(), turn_body(w, i));
    RUN(w.angles(), track_angle(w, i));
    RUN(w.angles(), keep_angle(w, i));
}
