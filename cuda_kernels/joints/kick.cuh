// Stage kick: apply gravity and applied forces to the velocities (gpusim/reference/joints/kick.py).
#pragma once
#include "rows.cuh"

// v += H (g + f/m), L += H tau, omega = I^-1 L (walking-robot paper eq. 7 to 11).
GPUSIM_PHASE void kick_body(const World& w, int b) {
    const real time = kick_time(w), inverse_mass = w.inverse_mass()[b];
    const bool moves = w.dynamic()[b] != 0;
    real *twist = w.twist() + 6 * b, *momentum = w.momentum_kicked() + 3 * b;
    for (int k = 0; k < 3; ++k) {
        const real gravity = w.body_gravity()[3 * b + k];
        twist[k] = real(w.linear_velocity()[3 * b + k]) + time * (gravity + inverse_mass * w.force()[3 * b + k]);
        momentum[k] = real(w.angular_momentum()[3 * b + k]) + time * (moves ? w.torque()[3 * b + k] : real(0));
    }
    rotate3(w.inertia_inverse() + 9 * b, momentum, twist + 3);
    for (int k = 0; k < 6; ++k) w.twist_kicked()[6 * b + k] = twist[k];
}
