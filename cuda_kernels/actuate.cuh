// Stage actuate: applied forces, and the laws of axis rows (gpusim/reference/joints/actuate.py). Each actuator kind has
// a file in actuators/.
#pragma once
#include "joints/laws.cuh"

GPUSIM_FN void clear_term(ActuatorTerm& term) {
    term.impulse = term.slope = term.clamped_impulse = term.clamped_slope = term.clamped_bound = term.friction = 0.0;
    term.lower = -1.0 / 0.0;
    term.upper = 1.0 / 0.0;
}
// Return the mean command during the kick. The kick covers half of the last substep and half of the coming substep.
GPUSIM_SHARED double mean_command(const World& w, double before, double now) {
    if (w.semi_implicit()) return now;
    const double last = h_prev(w);
    return (last * double(real(before)) + w.h * double(real(now))) / (last + w.h);
}
// Compute P and D of a spring-damper for one kick (equations: gpusim/actuators/spring.py).
GPUSIM_FN void spring_law(const World& w, int axis, double stiffness, double damping, double elongation, double* impulse, double* slope) {
    const double kick = kick_time(w);
    if (w.semi_implicit()) {
        *impulse = -kick * stiffness * elongation;
        *slope = kick * (damping + kick * stiffness);
        return;
    }
    const double before = w.rate()[axis], before_last = w.rate_old()[axis];
    const double spring = stiffness * (elongation - 0.25 * double(h_prev(w)) * before);
    const double damper = damping * (LAST * before + BEFORE_LAST * before_last);
    *impulse = -kick * (spring + damper);
    *slope = kick * (0.25 * w.h * stiffness + NEXT * damping);
}
// Return the weight of the new value in an implicit step. ``ratio`` is h/T (gpusim/description/actuator_kinds.py).
GPUSIM_SHARED double fitted_weight(double ratio) {
    return ratio < 1e-3 ? 0.5 + ratio / 12.0 : 1.0 / -det::expm1(-ratio) - 1.0 / ratio;
}
