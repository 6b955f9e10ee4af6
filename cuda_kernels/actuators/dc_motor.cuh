// DC motor with gearbox on a joint coordinate (equations: gpusim/actuators/dc_motor.py).
#pragma once
#include "../actuate.cuh"

GPUSIM_FN void motor_evaluate(const World& w, int k, ActuatorTerm& term) {
    const int axis = w.motor_axis()[k];
    const bool semi_implicit = w.semi_implicit() != 0;
    const double kick = kick_time(w), ratio = w.motor_gear_ratio(k), stall = w.motor_stall_torque(k);
    const double idle = w.motor_no_load_speed(k), electric = w.motor_electrical_time_constant(k);
    const double after = double(real(w.motor_command_now(k)));
    const double before = semi_implicit ? after : double(real(w.motor_command_before(k)));
    const double interval = semi_implicit ? w.h : double(h_prev(w)), torque = w.motor_torque(k), drive = w.motor_drive(k);
    double gain = 1.0, carried = 0.0, late = semi_implicit ? 0.0 : w.h / (2.0 * kick);
    if (electric > 0.0) {
        const double theta = fitted_weight(interval / electric), divisor = electric + interval * theta;
        gain = interval * theta / divisor;
        carried = (electric * torque + interval * (1.0 - theta) * (drive - torque)) / divisor;
        const double z = 0.5 * w.h / electric;
        late *= 1.0 + det::expm1(-z) / z;
    }
    const double last = ratio * w.rate()[axis], before_last = ratio * w.rate_old()[axis];
    const double known_speed = semi_implicit ? 0.0 : LAST * last + BEFORE_LAST * before_last;
    const double slope = gain * stall / idle * (semi_implicit ? 1.0 : NEXT);
    const double constant = carried + gain * stall * (before - known_speed / idle);
    const double inertia = stall * w.motor_mechanical_time_constant(k) / idle;
    w.motor_constant(k) = constant;
    w.motor_slope(k) = slope;
    w.motor_known_speed(k) = known_speed;
    term.impulse = ratio * (kick * (constant + late * stall * (after - before)) + inertia * last);
    term.slope = ratio * ratio * (kick * slope + inertia);
}
// Update torque and drive at t_n from the solved rotor speed.
GPUSIM_FN void motor_advance(const World& w, int k) {
    const double speed = w.motor_gear_ratio(k) * w.rate_next()[w.motor_axis()[k]];
    const double speed_now = (w.semi_implicit() ? 1.0 : NEXT) * speed + w.motor_known_speed(k);
    w.motor_torque(k) = stored(w.motor_constant(k) - w.motor_slope(k) * speed);
    const double after = double(real(w.motor_command_now(k)));
    w.motor_drive(k) = stored(w.motor_stall_torque(k) * (after - speed_now / w.motor_no_load_speed(k)));
}
