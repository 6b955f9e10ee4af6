// Residuals of the solver, and the worlds that exceed an accuracy limit (gpusim/reference/accuracy.py).
#pragma once
#include "joints/rows.cuh"

// Return the error of a rigid row at the start of the substep, or 0 for an axis row.
GPUSIM_FN double start_error(const World& w, int row) {
    const int element = w.row_element()[row], coupling = w.row_coupling()[row];
    return element >= 0 ? w.element_value()[element] : (coupling >= 0 ? w.coupling_value()[coupling] : 0.0);
}
// Write the index of a constraint into the last bits of a number. NaN and 0 do not change.
GPUSIM_FN double tagged(double value, int index) {
    return choose(value > 0.0, with_last_bits(value, TAG_MASK, TAG_MASK - index), value);
}
// Measure the gap and the rotation error of joint c. Ignore poses that the user has just set.
GPUSIM_PHASE void joint_residual(const World& w, int c) {
    const mask counts = (*w.step_last() > 0.0) & (*w.posed() == 0);
    if (!any(counts)) return;
    double square = 0.0, tilt = 0.0;
    for (int row = c * w.block(); row < c * w.block() + w.constraint_rows()[c]; ++row) {
        const double error = abs_(start_error(w, row));
        if (w.row_rigid()[row] == ROW_GAP) square += error * error;
        else tilt = choose(error <= tilt, tilt, error);
    }
    const double gap = tagged(sqrt_(square), c);
    raise_where(counts, w.joint_drift_peak(), gap);
    if (w.constraint_in_loop()[c]) raise_where(counts, w.loop_gap(), gap);
    raise_where(counts, w.joint_tilt_peak(), tagged(tilt, c));
}
#if !GPUSIM_WIDE
// Compute the largest impulse change of a sweep, relative to the largest load. If the change is tiny, the result is 0.
GPUSIM_FN void store_contact_residual(const World& w) {
    const bool counts = *w.largest_load() > real(0) && *w.contact_change() > real(w.min_contact_change());
    *w.contact_residual_now() = counts ? *w.contact_change() / *w.largest_load() : real(0);
    *w.contact_change() = *w.largest_load() = real(0);
}
// Report a world to the host when the world exceeds a limit for the first time. Report contacts only after several
// consecutive bad substeps.
GPUSIM_FN void watch_accuracy(const World& w) {
    *w.contact_streak() = double(*w.contact_residual_now()) > w.contact_residual_limit() ? *w.contact_streak() + 1 : 0;
    *w.loop_open() = *w.loop_gap() > w.loop_gap_limit() ? *w.loop_open() + 1 : 0;
    int bits = *w.inexact();
    if (*w.joint_drift_peak() > w.joint_drift_limit() || *w.joint_tilt_peak() > w.joint_tilt_limit()) bits |= INEXACT_JOINTS;
    if (*w.contact_streak() >= w.contact_streak_limit()) bits |= INEXACT_CONTACTS;
    if (*w.not_converged() > 0) bits |= INEXACT_MODES;
    if (*w.void_peak() > 0.0) bits |= INEXACT_VOIDS;
    if (*w.jump_peak() > 0.0) bits |= INEXACT_JUMPS;
    if (*w.spin_peak() > 0.0) bits |= INEXACT_SPINS;
    if (bits == *w.inexact() || in_global(w.args()->health)[w.id]) return;
    *w.inexact() = bits;
    count_one(in_global(w.args()->inexact));
}
#endif
