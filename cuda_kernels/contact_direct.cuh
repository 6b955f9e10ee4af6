// Contacts on articulated bodies with the direct solver: each manifold feels its bodies through all joints, by the factor of
// the joint rows, and every change is followed by the joints' answer (gpusim/reference/contact_direct.py). So a foot
// carries the whole robot in one sweep, where a foot alone would need as many as the masses' ratio.
#pragma once
#include "contact_solve.cuh"
#include "direct_solve.cuh"

GPUSIM_FN int articulated_member(const World& w, int i) { return list_member(w, w.max_colors() + 1, i); }
// Motions of both sides (12 numbers) by a unit wrench along j about the middle.
GPUSIM_PHASE void unit_motion(const World& w, int m, int j) {
    const Lane r = record(w, m);
    real wrench[6];
    for (int k = 0; k < 6; ++k) wrench[k] = k == j ? real(1) : real(0);
    for (int side = 0; side < 2; ++side) side_motion(r, side, wrench, w.side_motion() + 6 * side);
}
// What the joints have to take back of the motions of both sides.
GPUSIM_PHASE void joint_response_row(const World& w, int m, int row) {
    const int c = row / w.block(), slots = w.slots();
    real sum = real(0);
    for (int s = 0; s < slots; ++s)
        for (int side = 0; side < 2; ++side) {
            const int b = side_body(w, m, side);
            if (w.dynamic()[b] && w.constraint_bodies()[c * slots + s] == b) sum += dot6(jacobian_row(w, row, s), w.side_motion() + 6 * side);
        }
    w.rhs()[row] = -sum;
}
// Column j of the response: the motions and the joints' answer.
GPUSIM_PHASE void respond_column(const World& w, int m, int j) {
    Lane r = record(w, m);
    real moved[12], relative[6];
    for (int side = 0; side < 2; ++side) {
        impulse_response(w, side_body(w, m, side), w.delta(), moved + 6 * side);
        for (int k = 0; k < 6; ++k) moved[6 * side + k] += w.side_motion()[6 * side + k];
    }
    relative_motion(r, moved, moved + 6, relative);
    for (int k = 0; k < 6; ++k) r[AT_RESPONSE + 6 * k + j] = relative[k];
}
GPUSIM_PHASE void keep_factor(const World& w, int) { *w.refactor() = 0; }
GPUSIM_PHASE void hold_bias(const World& w, int) { *w.hold_bias() = 1; }
GPUSIM_PHASE void respond_points(const World& w, int m) {
    Lane r = record(w, m);
    point_masses(r);
    for (int k = 0; k < w.pair_points()[m]; ++k) invert_point(r, point_record(r, k));
}
// Solve an articulated manifold for the velocities and move its bodies; the joints answer to ``side_motion`` after it.
GPUSIM_FN void finish_articulated(const World& w, int m, Lane r, const Sweep<real>& s) {
    for (int side = 0; side < 2; ++side) {
        real* moved = w.side_motion() + 6 * side;
        const int b = side_body(w, m, side);
        side_motion(r, side, s.wrench, moved);
        for (int k = 0; w.dynamic()[b] && k < 6; ++k) w.twist()[6 * b + k] += moved[k];
    }
    *w.joints_respond() = s.most > real(0);
    end_manifolds(w, w.record_place()[m], r, 1, s);
}
GPUSIM_PHASE void sweep_articulated(const World& w, int m) {
    Lane r = record(w, m);
    Sweep<real> s;
    start_sweep(r, w.twist(), s);
    sweep_points(w, w.record_place()[m], r, s);
    finish_articulated(w, m, r, s);
}
GPUSIM_PHASE void warm_articulated(const World& w, int m) {
    Lane r = record(w, m);
    real wrench[6];
    warm_wrench(r, wrench);
    move_sides(w, r, wrench);
}
// Records that the guard keeps or returns to.
GPUSIM_PHASE void guard_pair(const World& w, int m) {
    if (m >= *w.pair_count() || !w.pair_points()[m]) return;
    Lane r = record(w, m);
    real* kept = w.kept_manifold() + RECORD_SIZE * m;
    if (*w.guard_action() == KEEP_TWIST) take(r, RECORD_SIZE, kept);
    if (*w.guard_action() == RESTORE_TWIST) put(kept, RECORD_SIZE, r);
}
