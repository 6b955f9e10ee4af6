// The law of an axis row, and its closed-form solution for one row (gpusim/reference/laws.py).
#pragma once
#include "rows.cuh"

// A mode is a piece (FREE to AT_UPPER) and CLAMP_UP, CLAMP_DOWN or neither.
#define CONTACT_BITS 7
#define CLAMP_BITS (CLAMP_UP | CLAMP_DOWN)

// What one actuator adds to the law of its axis, as doubles in the array ``share``.
struct Share {
    double impulse, slope;                             // P - D u
    double servo_impulse, servo_slope, servo_most;     // clamp(Ps - Ds u, -S, S)
    double friction;                                   // impulse of dry friction, N s
    double lower, upper;                               // stops on the axis position
};

GPUSIM_FN Share& share(const World& w, int k) { return reinterpret_cast<Share*>(w.share())[k]; }

// Totals of all shares on axis k.
GPUSIM_PHASE void sum_law(const World& w, int k) {
    const double kick = kick_time(w), damping = w.damping()[k], armature = w.armature()[k];
    double impulse = armature * w.rate()[k], slope = armature;
    if (w.papers()) {
        slope += kick * damping;
    } else {
        impulse += -kick * damping * (LAST * w.rate()[k] + BEFORE_LAST * w.rate_old()[k]);
        slope += kick * NEXT * damping;
    }
    double servo_impulse = 0.0, servo_slope = 0.0, servo_most = 0.0;
    for (int n = w.axis_share_start()[k]; n < w.axis_share_start()[k + 1]; ++n) {
        const Share& own = share(w, w.axis_share()[n]);
        impulse += own.impulse;
        slope += own.slope;
        servo_impulse += own.servo_impulse;
        servo_slope += own.servo_slope;
        servo_most += own.servo_most;
    }
    w.law_impulse()[k] = real(impulse);
    w.law_slope()[k] = real(slope);
    w.servo_impulse()[k] = real(servo_impulse);
    w.servo_slope()[k] = real(servo_slope);
    w.servo_most()[k] = real(servo_most);
}

// Least velocity that keeps or brings the axis at its limit; gap > 0 where it is passed.
GPUSIM_FN real limit_velocity(const World& w, real gap) {
    const real h = real(w.h);
    return gap > real(0) ? smaller(real(LIMIT_RECOVERY) * gap / h, real(LIMIT_SPEED)) : gap / h;
}
// Dry friction and velocity bounds of axis k.
GPUSIM_PHASE void bound_law(const World& w, int k) {
    double friction = double(kick_time(w)) * w.friction()[k], lower = w.limit_lower()[k], upper = w.limit_upper()[k];
    for (int n = w.axis_share_start()[k]; n < w.axis_share_start()[k + 1]; ++n) {
        const Share& own = share(w, w.axis_share()[n]);
        friction += own.friction;
        lower = larger(lower, own.lower);
        upper = smaller(upper, own.upper);
    }
    w.law_friction()[k] = real(friction);
    w.velocity_lower()[k] = limit_velocity(w, real(lower) - w.axis_position()[k]);
    w.velocity_upper()[k] = -limit_velocity(w, w.axis_position()[k] - real(upper));
}

// P and D of the linear part of axis k in a mode, friction included.
GPUSIM_FN void linear_part(const World& w, int k, int mode, real* impulse, real* slope) {
    const int clamp = mode & CLAMP_BITS, contact = mode & CONTACT_BITS;
    *impulse = w.law_impulse()[k];
    *slope = w.law_slope()[k];
    if (clamp == 0) {
        *impulse += w.servo_impulse()[k];
        *slope += w.servo_slope()[k];
    } else {
        *impulse += clamp == CLAMP_UP ? w.servo_most()[k] : -w.servo_most()[k];
    }
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
// Row velocity u = free_velocity + response p with p on the law of axis k, for the row alone; and the mode.
GPUSIM_SHARED real solve_row(const World& w, int k, real free_velocity, real response, int* mode) {
    const real impulse = w.law_impulse()[k], slope = w.law_slope()[k], friction = w.law_friction()[k];
    const real servo = w.servo_impulse()[k], servo_slope = w.servo_slope()[k], most = w.servo_most()[k];
    const real lower = w.velocity_lower()[k], upper = w.velocity_upper()[k];
    int contact, clamp = 0;
    real velocity = solve_with_friction(impulse + servo, slope + servo_slope, free_velocity, response, friction, &contact);
    const real effort = servo - servo_slope * clamped(velocity, lower, upper);
    if (effort > most) {
        velocity = solve_with_friction(impulse + most, slope, free_velocity, response, friction, &contact);
        clamp = CLAMP_UP;
    }
    if (-effort > most) {
        velocity = solve_with_friction(impulse - most, slope, free_velocity, response, friction, &contact);
        clamp = CLAMP_DOWN;
    }
    if (velocity > upper) contact = AT_UPPER;
    if (velocity < lower) contact = AT_LOWER;
    *mode = contact + clamp;
    return clamped(velocity, lower, upper);
}
