// Position and velocity servos with an effort limit (gpusim/actuators/servo.py).
#pragma once
#include "../actuate.cuh"

GPUSIM_FN void servo_evaluate(const World& w, int k, ActuatorTerm& term) {
    const int axis = w.servo_axis()[k];
    const double target = mean_command(w, w.servo_target_before(k), w.servo_target_now(k));
    const bool follows_velocity = w.servo_follows_velocity(k) > 0.5;
    const double elongation = double(w.axis_position()[axis]) - target, damping = w.servo_damping(k);
    const double max_effort = w.servo_effort_limit(k), kick = kick_time(w);
    double impulse, slope;
    spring_law(w, axis, follows_velocity ? 0.0 : w.servo_stiffness(k), damping, elongation, &impulse, &slope);
    // A velocity servo damps the difference from its target velocity.
    if (follows_velocity) impulse += kick * damping * target;
    if (max_effort < 1.0 / 0.0) {
        term.clamped_impulse = impulse;
        term.clamped_slope = slope;
        term.clamped_bound = kick * max_effort;
    } else {
        term.impulse = impulse;
        term.slope = slope;
    }
}
