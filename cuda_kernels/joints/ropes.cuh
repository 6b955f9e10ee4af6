// Moving limits of ropes (gpusim/reference/joints/ropes.py).
#pragma once
#include "laws.cuh"

// Return the rate of the lower (side 0) or upper (1) limit of axis k in this substep.
GPUSIM_FN real limit_rate_of(const World& w, int k, int side) {
    const int r = w.ropes() ? w.axis_rope()[k] : -1;
    return r < 0 ? real(0) : real(w.limit_rate()[2 * r + side]);
}
// Return whether a stop of an actuator is tighter than the limit of axis k.
GPUSIM_FN bool stops_before(const World& w, int k, int side, double goal) {
    bool tight = false;
    for (int n = w.axis_term_start()[k]; n < w.axis_term_start()[k + 1]; ++n) {
        const ActuatorTerm& term = read_term(w, w.axis_term()[n]);
        tight |= side ? term.upper < goal : term.lower > goal;
    }
    return tight;
}
// Move the limits of rope r by one substep, and add the rates to the velocity bounds of its axis.
GPUSIM_PHASE void move_limit(const World& w, int r) {
    const int k = w.rope_axis()[r], remaining = w.limit_left()[r] > 0 ? w.limit_left()[r] : w.substeps();
    const real position = w.axis_position()[k];
    for (int side = 0; side < 2; ++side) {
        double &now = w.limit_now()[2 * r + side], &rate = w.limit_rate()[2 * r + side];
        const double goal = side ? w.limit_upper()[k] : w.limit_lower()[k];
        // In a trial step without a new value, the limit continues as in the last substep.
        if (!*w.forward_only() || now != goal) rate = (goal - now) / (double(remaining) * w.h);
        if (!(rate >= -LENGTH_SPEED && rate <= LENGTH_SPEED)) {
            now = goal;
            rate = 0.0;
        }
        if (rate != 0.0 && !stops_before(w, k, side, goal)) {
            if (side) w.velocity_upper()[k] = -limit_velocity(w, position - real(now)) + real(rate);
            else w.velocity_lower()[k] = limit_velocity(w, real(now) - position) + real(rate);
        }
        now = remaining == 1 ? goal : now + rate * w.h;
    }
    w.limit_left()[r] = remaining - 1;
}
