// Stage sense: velocities and forces at t_n, from a kick and solve that are not kept (gpusim/reference/sense.py).
#pragma once
#include "drift.cuh"
#include "laws.cuh"

GPUSIM_PHASE void sense_body(const World& w, int b) {
    real *twist = w.twist_now() + 6 * b, *momentum = w.momentum_now() + 3 * b, change[3];
    real linear[3], angular[3];
    copy3(w.linear_velocity() + 3 * b, linear);
    copy3(w.angular_momentum() + 3 * b, angular);
    if (w.papers()) {
        for (int k = 0; k < 6; ++k) twist[k] = w.twist_before()[6 * b + k];
        copy3(angular, momentum);
        return;
    }
    momentum_change(w, b, change);
    const real last = h_prev(w), after = last / (last + real(w.h));
    for (int k = 0; k < 3; ++k) {
        momentum[k] = angular[k] + after * ((w.momentum_kicked()[3 * b + k] + change[k]) - angular[k]);
        twist[k] = linear[k] + after * (w.twist()[6 * b + k] - linear[k]);
    }
    turn3(w.inertia_inverse() + 9 * b, momentum, twist + 3);
}
// Force of actuator share k on its axis over the tried kick, N or N m.
GPUSIM_PHASE void sense_share(const World& w, int k) {
    const Share& own = share(w, k);
    const double rate = w.rate_next()[w.share_axis()[k]], kick = kick_time(w);
    const double effort = clamped(own.servo_impulse - own.servo_slope * rate, -own.servo_most, own.servo_most);
    w.share_force()[k] = (own.impulse - own.slope * rate + effort) / (kick > 0.0 ? kick : 1.0);
}
GPUSIM_PHASE void keep_angle(const World& w, int k) { w.a->kept_angle[(long long)w.id * w.angles() + k] = w.angle()[k]; }
GPUSIM_PHASE void keep_offset(const World& w, int k) {
    w.a->kept_coupling_offset[(long long)w.id * w.couplings() + k] = w.coupling_offset()[k];
}
