// Health check of a world after a step (gpusim/backends/health.py): all numbers must be finite and not too large. The
// health word is 0, or 1 + the lowest code of a failure. The code is cause * HEALTH_INDICES + index of the body or
// actuator.
#pragma once
#include "joints/rows.cuh"

template <class T> GPUSIM_FN bool all_below(const T* values, int count, T bound) {
    bool fine = true;
    for (int k = 0; k < count; ++k) fine = fine && abs_(values[k]) < bound;
    return fine;
}
template <class T> GPUSIM_FN bool all_fine(const T* values, int count) { return all_below(values, count, T(GREATEST_SPEED)); }
// Return the limit of the angular momentum. Large machines have a large angular momentum at any speed.
GPUSIM_FN stored momentum_bound(const World& w, int b) {
    return stored(GREATEST_SPEED) * stored(max_(w.inertia_largest()[b], real(1)));
}
GPUSIM_FN void blame(const World& w, int what, int index) { lower_to(w.cause(), what * HEALTH_INDICES + index); }

// An open loop has the lowest priority, because too large numbers may have opened the loop.
GPUSIM_PHASE void start_check(const World& w, int) {
    *w.cause() = *w.loop_open() >= OPEN_SUBSTEPS ? HEALTH_JOINT * HEALTH_INDICES : 0x7fffffff;
}
GPUSIM_PHASE void check_body(const World& w, int b) {
    bool fine = all_fine(w.linear_velocity() + 3 * b, 3);
    if (!fine) blame(w, HEALTH_LINEAR, b);
    if (!all_below(w.angular_momentum() + 3 * b, 3, momentum_bound(w, b))) { fine = false; blame(w, HEALTH_ANGULAR, b); }
    if (!all_fine(w.position() + 3 * b, 3)) { fine = false; blame(w, HEALTH_POSITION, b); }
    if (!all_fine(w.orientation() + 4 * b, 4)) { fine = false; blame(w, HEALTH_ORIENTATION, b); }
    for (int k = b; k < w.controls(); k += w.bodies())
        if (!(w.command_before()[k] - w.command_before()[k] == 0.0)) blame(w, HEALTH_COMMAND, k);
}
template <class T> GPUSIM_FN double first_bad(const T* values, int count, T bound = T(GREATEST_SPEED)) {
    for (int k = 0; k < count; ++k)
        if (!(abs_(values[k]) < bound)) return values[k];
    return 0.0;
}
// Return the invalid number, or 0 if the invalid number belongs to an actuator.
GPUSIM_FN double cause_value(const World& w) {
    const int what = *w.cause() / HEALTH_INDICES, b = *w.cause() % HEALTH_INDICES;
    if (what == HEALTH_STARTED) return first_bad(w.twist_before() + 6 * b, 6);
    if (what == HEALTH_LINEAR) return first_bad(w.linear_velocity() + 3 * b, 3);
    if (what == HEALTH_ANGULAR) return first_bad(w.angular_momentum() + 3 * b, 3, momentum_bound(w, b));
    if (what == HEALTH_JOINT) return *w.loop_gap();
    if (what == HEALTH_POSITION) return first_bad(w.position() + 3 * b, 3);
    return what == HEALTH_ORIENTATION ? first_bad(w.orientation() + 4 * b, 4) : 0.0;
}
GPUSIM_FN void report_failure(const World& w) {
    in_global(w.args()->health)[w.id] = 1 + *w.cause();
    in_global(w.args()->health_value)[w.id] = cause_value(w);
    count_one(in_global(w.args()->failed));
}
// Record a body that was too fast at the start of the step. HEALTH_STARTED has priority, because a high initial speed
// causes other failures.
GPUSIM_PHASE void check_start(const World& w, int b) {
    if (*w.cause() != 0x7fffffff && !all_fine(w.twist_before() + 6 * b, 6)) blame(w, HEALTH_STARTED, b);
}
