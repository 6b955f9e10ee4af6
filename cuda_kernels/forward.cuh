// stage forward: the actuators' forces over a kick that is tried and not kept (gpusim/reference/forward.py).
#pragma once
#include "laws.cuh"

// Force of actuator term k on its axis over the tried kick, N or N m.
GPUSIM_PHASE void forward_term(const World& w, int k) {
    const ActuatorTerm& own = read_term(w, k);
    const double rate = w.rate_next()[w.actuator_term_axis()[k]], kick = kick_time(w);
    const double effort = clamped(own.clamped_impulse - own.clamped_slope * rate, -own.clamped_bound, own.clamped_bound);
    w.actuator_term_force()[k] = (own.impulse - own.slope * rate + effort) / (kick > 0.0 ? kick : 1.0);
}
GPUSIM_PHASE void keep_angle(const World& w, int k) { in_global(w.args()->kept_angle)[(long long)w.id * w.angles() + k] = w.angle()[k]; }
GPUSIM_PHASE void keep_offset(const World& w, int k) {
    in_global(w.args()->kept_coupling_offset)[(long long)w.id * w.couplings() + k] = w.coupling_offset()[k];
}
