// Prescribed motion of a joint coordinate (equation: gpusim/actuators/prescribed_motion.py).
#pragma once
#include "../actuate.cuh"

// Return how many substeps of the step are done.
GPUSIM_FN int substeps_done(const World& w) {
    return *w.sensed_substeps() >= w.substeps() ? 0 : *w.sensed_substeps();
}
GPUSIM_FN double motion_rate(const World& w, int k) {
    const int done = substeps_done(w);
    double x = w.motion_position_now(k), v = w.motion_velocity_now(k);
    const double s = w.h * done, a = w.motion_acceleration_now(k);
    // A trial after a step, before new commands arrive, extrapolates the path.
    if (*w.forward_only() && *w.step_last() > 0.0 && x == w.motion_position_before(k) && v == w.motion_velocity_before(k) &&
        a == w.motion_acceleration_before(k)) {
        const double dt = w.h * w.substeps();
        x += dt * (v + 0.5 * dt * a);
        v += dt * a;
    }
    const double gap = x + s * (v + 0.5 * s * a) - double(w.axis_position()[w.motion_axis()[k]]);
    return v + a * (s + 0.5 * w.h) + gap / (w.h * (w.substeps() - done));
}
GPUSIM_FN void motion_evaluate(const World& w, int k, ActuatorTerm& own) {
    own.slope = w.motion_slope(k);
    own.impulse = own.slope * motion_rate(w, k);
}
// Add the force of this kick to the mean over the step: the row's load without other actuators on the axis.
GPUSIM_FN void motion_advance(const World& w, int k) {
    const int axis = w.motion_axis()[k];
    const double kick = kick_time(w), before = w.motion_force(k), share = kick / (*w.sensed_time() + kick), slope = w.motion_slope(k);
    real total, slopes;
    linear_part(w, axis, w.mode()[axis], &total, &slopes);
    const double others = (double(total) - slope * motion_rate(w, k)) - (double(slopes) - slope) * double(w.rate_next()[axis]);
    const double force = (double(w.solved()[w.axis_row()[axis]]) - others) / kick;
    const double way = abs_(w.motion_position_now(k) - double(w.axis_position()[axis]));
    if (substeps_done(w) == 0 && way > MOTION_JUMP_SPEED * w.h * w.substeps()) raise_to(w.jump_peak(), tagged(way, k));
    w.motion_force(k) = stored(substeps_done(w) == 0 ? force : before + share * (force - before));
}
