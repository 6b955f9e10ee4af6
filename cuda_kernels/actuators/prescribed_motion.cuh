// Prescribed motion of a joint coordinate (equation: gpusim/actuators/prescribed_motion.py).
#pragma once
#include "../actuate.cuh"

// Return the number of completed substeps of the step.
GPUSIM_FN int substeps_done(const World& w) {
    return *w.sensed_substeps() >= w.substeps() ? 0 : *w.sensed_substeps();
}
// Return the jerk in the first substep of a step, or 0 if the path is not smooth.
GPUSIM_FN double motion_new_jerk(const World& w, int k) {
    const double a = w.motion_acceleration_now(k), a0 = w.motion_acceleration_before(k), dt = w.h * w.substeps();
    const double v0 = w.motion_velocity_before(k), max_change = dt * abs_(a - a0);
    const double rate = w.motion_velocity_now(k) - v0 - 0.5 * dt * (a + a0);
    const double distance = w.motion_position_now(k) - w.motion_position_before(k) - dt * (v0 + dt * (2.0 * a0 + a) / 6.0);
    const bool smooth = abs_(rate) <= MOTION_SMOOTH_RATE * max_change && abs_(distance) <= MOTION_SMOOTH_WAY * dt * max_change;
    return smooth ? (a - a0) / dt : 0.0;
}
GPUSIM_FN double motion_rate(const World& w, int k) {
    const int done = substeps_done(w);
    double x = w.motion_position_now(k), v = w.motion_velocity_now(k), a = w.motion_acceleration_now(k);
    double j = done == 0 ? motion_new_jerk(w, k) : double(w.motion_jerk(k));
    // A trial step may run before the new commands arrive. The trial step then extrapolates the path.
    if (*w.forward_only() && *w.step_last() > 0.0 && x == w.motion_position_before(k) && v == w.motion_velocity_before(k) &&
        a == w.motion_acceleration_before(k)) {
        const double dt = w.h * w.substeps();
        j = w.motion_jerk(k);
        x += dt * (v + dt * (0.5 * a + dt * j / 6.0));
        v += dt * (a + 0.5 * dt * j);
        a += dt * j;
    }
    const double h = w.h, s = h * done;
    const double gap = x + s * (v + s * (0.5 * a + s * j / 6.0)) - double(w.axis_position()[w.motion_axis()[k]]);
    const double mean = v + a * (s + 0.5 * h) + 0.5 * j * (s * s + s * h + h * h / 3.0);
    return mean + gap / (h * (w.substeps() - done));
}
GPUSIM_FN void motion_evaluate(const World& w, int k, ActuatorTerm& term) {
    term.slope = w.motion_slope(k);
    term.impulse = term.slope * motion_rate(w, k);
}
// Add the force of this kick to the mean force of the step, without the forces of other actuators on the axis.
GPUSIM_FN void motion_advance(const World& w, int k) {
    const int axis = w.motion_axis()[k];
    const double kick = kick_time(w), before = w.motion_force(k), weight = kick / (*w.sensed_time() + kick), slope = w.motion_slope(k);
    real total, slopes;
    linear_part(w, axis, w.mode()[axis], &total, &slopes);
    const double others = (double(total) - slope * motion_rate(w, k)) - (double(slopes) - slope) * double(w.rate_next()[axis]);
    const double force = (double(w.solved()[w.axis_row()[axis]]) - others) / kick;
    const double distance = abs_(w.motion_position_now(k) - double(w.axis_position()[axis]));
    if (substeps_done(w) == 0 && distance > MOTION_JUMP_SPEED * w.h * w.substeps()) raise_to(w.jump_peak(), tagged(distance, k));
    if (substeps_done(w) == 0) w.motion_jerk(k) = stored(motion_new_jerk(w, k));
    w.motion_force(k) = stored(substeps_done(w) == 0 ? force : before + weight * (force - before));
}
