// Stage forward: forces of actuators in a trial substep (gpusim/reference/joints/forward.py).
#pragma once
#include "laws.cuh"

// Return the dry friction impulse on an axis.
GPUSIM_FN double friction_impulse(const World& w, int axis) {
    const int mode = w.mode()[axis], contact = mode & CONTACT_BITS;
    const double bound = w.law_friction()[axis];
    if (contact != STICK) return contact == SLIDE_DOWN ? bound : (contact == SLIDE_UP ? -bound : 0.0);
    real impulse, slope;
    loose_part(w, axis, mode, &impulse, &slope);
    return clamped(double(w.solved()[w.axis_row()[axis]] - impulse), -bound, bound);
}
// Compute the force of actuator term k on its axis (N or N m), including its part of the dry friction.
GPUSIM_PHASE void forward_term(const World& w, int k) {
    const ActuatorTerm& term = read_term(w, k);
    const int axis = w.actuator_term_axis()[k];
    const double rate = w.rate_next()[axis], kick = kick_time(w);
    double effort = clamped(term.clamped_impulse - term.clamped_slope * rate, -term.clamped_bound, term.clamped_bound);
    if (term.friction > 0.0) effort += term.friction / double(w.law_friction()[axis]) * friction_impulse(w, axis);
    w.actuator_term_force()[k] = (term.impulse - term.slope * rate + effort) / (kick > 0.0 ? kick : 1.0);
}
GPUSIM_PHASE void keep_angle(const World& w, int k) { in_global(w.args()->kept_angle)[(long long)w.id * w.angles() + k] = w.angle()[k]; }
GPUSIM_PHASE void keep_offset(const World& w, int k) {
    in_global(w.args()->kept_coupling_offset)[(long long)w.id * w.couplings() + k] = w.coupling_offset()[k];
}
