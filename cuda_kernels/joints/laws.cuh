// Law of axis rows, and the solution of the law for a row alone (gpusim/reference/joints/laws.py).
#pragma once
#include "rows.cuh"

// A mode is a piece (FREE to AT_UPPER). If clamped term j is at a bound, the mode also contains CLAMP_UP << 2 j or
// CLAMP_DOWN << 2 j.
#define CLAMP_BITS (CLAMP_UP | CLAMP_DOWN)

// Part of the law of an axis row that comes from one actuator. The array ``actuator_term`` stores the part as doubles.
struct ActuatorTerm {
    double impulse, slope;                             // P - D u
    double clamped_impulse, clamped_slope, clamped_bound;     // clamp(Ps - Ds u, -S, S), for kinds that are ``clamped``
    double friction;                                   // impulse of dry friction, N s
    double lower, upper;                               // stops on the axis position
};

GPUSIM_FN ActuatorTerm& actuator_term(const World& w, int k) { return reinterpret_cast<ActuatorTerm*>(w.actuator_term())[k]; }
GPUSIM_FN const ActuatorTerm& read_term(const World& w, int k) {
    return reinterpret_cast<const ActuatorTerm*>(w.actuator_term())[k];
}

#if !GPUSIM_WIDE
// Law P - D u that couples several axes. Row r of D starts at slope + r * width.
struct CoupledLaw {
    int count, width;
    const int* axis;
    double *impulse, *slope;
};
GPUSIM_FN CoupledLaw coupled_law(const World& w, int i) {
    const int n = w.block(), first = w.coupled_start()[i];
    return {w.coupled_start()[i + 1] - first, n, w.coupled_axis() + first, w.coupled_impulse() + i * n,
            w.coupled_slope() + i * n * n};
}
#endif

// The clamped terms of axis k have the indices first_clamp to end_clamp - 1 in the arrays clamped_...
GPUSIM_FN int first_clamp(const World& w, int k) { return w.clamps() ? w.axis_clamp_start()[k] : 0; }
GPUSIM_FN int end_clamp(const World& w, int k) { return w.clamps() ? w.axis_clamp_start()[k + 1] : 0; }

// Limits of axis k, combined with the stops of its actuators. Broken joints have no limits (signals/sense.cuh).
struct AxisStops {
    double lower, upper;
};
GPUSIM_FN AxisStops axis_stops(const World& w, int k) {
    AxisStops stops = {w.limit_lower()[k], w.limit_upper()[k]};
    const int sensor = w.joint_sensors() ? w.axis_sensor()[k] : -1;
    if (sensor >= 0) {
        stops.lower -= w.joint_slack()[sensor];
        stops.upper += w.joint_slack()[sensor];
    }
    for (int n = w.axis_term_start()[k]; n < w.axis_term_start()[k + 1]; ++n) {
        const ActuatorTerm& term = read_term(w, w.axis_term()[n]);
        stops.lower = max_(stops.lower, term.lower);
        stops.upper = min_(stops.upper, term.upper);
    }
    return stops;
}
// Return the minimum velocity that keeps an axis within a lower limit, or moves it back. gap: limit - position.
GPUSIM_FN real limit_velocity(const World& w, real gap) {
    const real h = real(w.h);
    return choose(gap > real(0), min_(real(LIMIT_RECOVERY) * gap / h, real(LIMIT_SPEED)), gap / h);
}
GPUSIM_FN void push_back(const World& w, int k) {
    const AxisStops stops = axis_stops(w, k);
    const real up = limit_velocity(w, real(stops.lower) - w.axis_position()[k]);
    const real down = limit_velocity(w, w.axis_position()[k] - real(stops.upper));
    const mask low = up > real(LOOP_SPEED), high = down > real(LOOP_SPEED);
    if (!any(low | high)) return;
    const int row = w.axis_row()[k], n = w.block(), c = row / n, slots = w.slots();
    const real *j = w.jacobian() + 6 * (c * slots * n + row - c * n), *m = w.mass_jacobian() + 6 * (c * slots * n + row - c * n);
    real response = dot6(j, m);
    for (int s = 1; s < w.constraint_slots()[c]; ++s) response += dot6(j + 6 * s * n, m + 6 * s * n);
    const real slope = real(1) / response, none = real(0);
    w.law_impulse()[k] += choose(low, up * slope, none) - choose(high, down * slope, none);
    w.law_slope()[k] += choose(low, slope, none) + choose(high, slope, none);
}
// Sum all terms on axis k.
GPUSIM_PHASE void sum_law(const World& w, int k) {
    const double kick = kick_time(w), damping = w.damping()[k], armature = w.armature()[k];
    double impulse = armature * w.rate()[k], slope = armature;
    if (w.semi_implicit()) {
        slope += kick * damping;
    } else {
        impulse += -kick * damping * (LAST * w.rate()[k] + BEFORE_LAST * w.rate_old()[k]);
        slope += kick * NEXT * damping;
    }
    for (int n = w.axis_term_start()[k]; n < w.axis_term_start()[k + 1]; ++n) {
        const ActuatorTerm& term = read_term(w, w.axis_term()[n]);
        impulse += term.impulse;
        slope += term.slope;
    }
    w.law_impulse()[k] = real(impulse);
    w.law_slope()[k] = real(slope);
    for (int n = first_clamp(w, k); n < end_clamp(w, k); ++n) {
        const ActuatorTerm& term = read_term(w, w.axis_clamp()[n]);
        w.clamped_impulse()[n] = real(term.clamped_impulse);
        w.clamped_slope()[n] = real(term.clamped_slope);
        w.clamped_bound()[n] = real(term.clamped_bound);
    }
    if (w.axis_in_loop()[k]) push_back(w, k);
}

// Set the dry friction and velocity bounds of axis k.
GPUSIM_PHASE void bound_law(const World& w, int k) {
    double friction = double(kick_time(w)) * w.friction()[k];
    for (int n = w.axis_term_start()[k]; n < w.axis_term_start()[k + 1]; ++n) friction += read_term(w, w.axis_term()[n]).friction;
    w.law_friction()[k] = real(friction);
    const AxisStops stops = axis_stops(w, k);
    const real up = limit_velocity(w, real(stops.lower) - w.axis_position()[k]);
    const real down = limit_velocity(w, w.axis_position()[k] - real(stops.upper));
    const bool loop = w.axis_in_loop()[k];
    w.velocity_lower()[k] = loop ? min_(up, real(LOOP_SPEED)) : up;
    w.velocity_upper()[k] = loop ? -min_(down, real(LOOP_SPEED)) : -down;
}

#if !GPUSIM_WIDE
// Compute P and D of axis k in a mode, without friction.
GPUSIM_FN void loose_part(const World& w, int k, int mode, real* impulse, real* slope) {
    real clamped_impulse = real(0), clamped_slope = real(0);
    int clamps = mode;
    for (int n = first_clamp(w, k); n < end_clamp(w, k); ++n, clamps >>= 2) {
        const int clamp = clamps & CLAMP_BITS;
        if (clamp == 0) {
            clamped_impulse += w.clamped_impulse()[n];
            clamped_slope += w.clamped_slope()[n];
        } else {
            clamped_impulse += clamp == CLAMP_UP ? w.clamped_bound()[n] : -w.clamped_bound()[n];
        }
    }
    *impulse = w.law_impulse()[k] + clamped_impulse;
    *slope = w.law_slope()[k] + clamped_slope;
}
// Compute P and D of axis k in a mode, including friction.
GPUSIM_FN void linear_part(const World& w, int k, int mode, real* impulse, real* slope) {
    const int contact = mode & CONTACT_BITS;
    loose_part(w, k, mode, impulse, slope);
    if (contact == SLIDE_DOWN) *impulse += w.law_friction()[k];
    if (contact == SLIDE_UP) *impulse -= w.law_friction()[k];
}

GPUSIM_FN real solve_with_friction(real impulse, real slope, real free_velocity, real response, real friction, int* contact) {
    const real divisor = real(1) + response * slope;
    const real velocity = (free_velocity + response * impulse) / divisor;
    if (!(friction > real(0))) {
        *contact = FREE;
        return velocity;
    }
    const real stick = response * friction / divisor;
    *contact = velocity > stick ? SLIDE_UP : (velocity < -stick ? SLIDE_DOWN : STICK);
    return *contact == SLIDE_UP ? velocity - stick : (*contact == SLIDE_DOWN ? velocity + stick : real(0));
}
GPUSIM_FN int new_clamps(const World& w, int k, int clamps, real velocity) {
    int up = 0, down = 0, shift = 0;
    real excess = real(0);
    for (int n = first_clamp(w, k); n < end_clamp(w, k); ++n, shift += 2) {
        if (clamps >> shift & CLAMP_BITS) continue;
        const real effort = w.clamped_impulse()[n] - w.clamped_slope()[n] * velocity, bound = w.clamped_bound()[n];
        if (effort > bound) {
            up |= CLAMP_UP << shift;
            excess += effort - bound;
        }
        if (-effort > bound) {
            down |= CLAMP_DOWN << shift;
            excess += effort + bound;
        }
    }
    return excess > real(0) ? up : (excess < real(0) ? down : up | down);
}
// Solve u = free_velocity + response p with the law p(u) of axis k, for a row alone. Return u, and compute the mode.
// Each round puts at least one more clamped term at a bound.
GPUSIM_FN real solve_row(const World& w, int k, real free_velocity, real response, int* mode) {
    const real friction = w.law_friction()[k], lower = w.velocity_lower()[k], upper = w.velocity_upper()[k];
    int contact, clamps = 0, added;
    real velocity, impulse, slope;
    do {
        loose_part(w, k, clamps, &impulse, &slope);
        velocity = solve_with_friction(impulse, slope, free_velocity, response, friction, &contact);
        added = new_clamps(w, k, clamps, clamped(velocity, lower, upper));
        clamps |= added;
    } while (added);
    if (velocity > upper) contact = AT_UPPER;
    if (velocity < lower) contact = AT_LOWER;
    *mode = contact + clamps;
    return clamped(velocity, lower, upper);
}
#endif
