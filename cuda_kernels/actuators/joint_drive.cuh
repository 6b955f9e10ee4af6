// Joint efforts from commands: a plain effort, and a servo with feed-forward (gpusim/actuators/joint_drive.py).
#pragma once
#include "../actuate.cuh"

// Set the law P - D u with separate lower and upper effort limits.
GPUSIM_FN void drive_law(const World& w, double impulse, double slope, double lower, double upper, ActuatorTerm& term) {
    const double kick = kick_time(w);
    if (upper < 1.0 / 0.0) {
        const double middle = kick * (0.5 * (lower + upper));
        term.impulse = middle;
        term.clamped_impulse = impulse - middle;
        term.clamped_slope = slope;
        term.clamped_bound = kick * (0.5 * (upper - lower));
    } else {
        term.impulse = impulse;
        term.slope = slope;
    }
}
GPUSIM_FN void joint_force_evaluate(const World& w, int k, ActuatorTerm& term) {
    const double kick = kick_time(w);
    const double effort = mean_command(w, w.joint_force_effort_before(k), w.joint_force_effort_now(k));
    drive_law(w, kick * effort, 0.0, w.joint_force_lower(k), w.joint_force_upper(k), term);
}
GPUSIM_FN void tracking_servo_evaluate(const World& w, int k, ActuatorTerm& term) {
    const int axis = w.tracking_servo_axis()[k];
    const double target = mean_command(w, w.tracking_servo_target_before(k), w.tracking_servo_target_now(k));
    const double rate = mean_command(w, w.tracking_servo_velocity_before(k), w.tracking_servo_velocity_now(k));
    const double effort = mean_command(w, w.tracking_servo_effort_before(k), w.tracking_servo_effort_now(k));
    const double elongation = double(w.axis_position()[axis]) - target, damping = w.tracking_servo_damping(k);
    double impulse, slope;
    spring_law(w, axis, w.tracking_servo_stiffness(k), damping, elongation, &impulse, &slope);
    const double feed_forward = damping * rate + effort, kick = kick_time(w);
    drive_law(w, impulse + kick * feed_forward, slope, w.tracking_servo_lower(k), w.tracking_servo_upper(k), term);
}
