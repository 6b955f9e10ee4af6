// Stage positions: correct the rigid rows after the drift, without changing velocities
// (gpusim/reference/solve/positions.py).
#pragma once
#include "../accuracy.cuh"
#include "../joints/factor.cuh"

GPUSIM_PHASE void refresh_rotation(const World& w, int b) { matrix_from_quaternion(w.orientation() + 4 * b, w.rotation() + 9 * b); }
// Set the position error of a row. Without loops, the error is 0 if the velocity solve stalled.
GPUSIM_PHASE void error_row(const World& w, int row) {
    const mask stalled = (*w.stalled() != whole(0)) & mask(!w.loop_constraints());
    const mask none = stalled | mask(is_swept_row(w, row));
    const real error = choose(none, real(0), -real(row_error(w, row)));
    w.rhs()[row] = error;
    // For loops, find the maximum error, in rad or divided by the usual lever.
    if (!w.loop_constraints() || !w.row_rigid()[row]) return;
    raise_where(true, w.position_error(), w.row_rigid()[row] == ROW_GAP ? error / real(w.usual_lever()) : error);
}
#if !GPUSIM_WIDE
GPUSIM_PHASE void start_closing(const World& w, int) {
    *w.position_error() = *w.position_rotation() = real(0);
    *w.error_before() = real(-1);
    *w.closing() = 1;
}
// Return whether the last correction had a large error, so that some error may remain.
GPUSIM_FN bool is_unclosed(const World& w) {
    return *w.closing() && (*w.error_before() < real(0) || *w.error_before() > real(CLOSED));
}
// Decide whether to correct the errors: 0 for no correction, 1 for the first correction, 2 for later corrections.
GPUSIM_PHASE void judge_errors(const World& w, int) {
    const real error = *w.position_error(), before = *w.error_before();
    const bool shrinks = error > real(CLOSED) && error < real(CLOSING_RATIO) * before;
    const bool retries = *w.closing() == 1 && error > real(OPEN) && error < real(APART);
    *w.closing() = before < real(0) ? 1 : (shrinks || retries ? 2 : 0);
    *w.error_before() = error;
    *w.position_error() = *w.position_rotation() = real(0);
}
#endif
// Compute the correction, and the square of its maximum rotation.
GPUSIM_PHASE void weigh_shift(const World& w, int b) {
    real* by = w.displacement() + 6 * b;
    impulse_response(w, b, w.delta(), by);
    raise_where(true, w.position_rotation(), by[3] * by[3] + by[4] * by[4] + by[5] * by[5]);
}
GPUSIM_FN void move_body(const World& w, int b, const real* by) {
    const double shift[3] = {double(by[0]), double(by[1]), double(by[2])}, rotation_vector[3] = {double(by[3]), double(by[4]), double(by[5])};
    move_pose(w.position() + 3 * b, w.orientation() + 4 * b, shift, rotation_vector);
}
GPUSIM_PHASE void shift_body(const World& w, int b) {
    real moved[6];
    impulse_response(w, b, w.delta(), moved);
    move_body(w, b, moved);
}
// In loops, reduce the linear correction, because the full correction might increase the error.
GPUSIM_PHASE void shift_trusted(const World& w, int b) {
    const real error = *w.error_before(), square = *w.position_rotation();
    const mask far = square > error;
    real moved[6];
    copy3(w.displacement() + 6 * b, moved);
    copy3(w.displacement() + 6 * b + 3, moved + 3);
    if (any(far)) {
        const real fraction = choose(far, error / choose(far, square, real(1)), real(1));
        for (int k = 0; k < 6; ++k) moved[k] *= fraction;
    }
    move_body(w, b, moved);
}
// Split impulses: a displacement before the drift that corrects a fraction of the errors. In the second-order scheme,
// the joints only follow the push-outs of contacts.
GPUSIM_FN real split_error(const World& w, int row) { return w.semi_implicit() ? real(start_error(w, row)) : real(0); }
GPUSIM_PHASE void split_row(const World& w, int row) {
    w.rhs()[row] = is_swept_row(w, row) ? real(0) : -real(SPLIT_FRACTION) * split_error(w, row);
}
#if !GPUSIM_WIDE
GPUSIM_PHASE void split_body(const World& w, int b) {
    real moved[6], *out = w.displacement() + 6 * b;
    impulse_response(w, b, w.delta(), moved);
    for (int k = 0; k < 6; ++k) out[k] = *w.pushing() ? out[k] + moved[k] : moved[k];
}
#endif
GPUSIM_PHASE void displace_body(const World& w, int b) { move_body(w, b, w.displacement() + 6 * b); }
