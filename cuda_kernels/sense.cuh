// Stage sense: the actuators' forces over a kick that is tried and not kept (gpusim/reference/sense.py).
#pragma once
#include "laws.cuh"

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
