// Springs with stops and tables, and different damping in bound and rebound (gpusim/actuators/strut.py).
#pragma once
#include "refitted_law.cuh"

struct StrutNumbers {
    const double* first;
    int stride;
    MEMBER double operator[](int at) const { return in_global(first)[at * stride]; }
};
GPUSIM_FN StrutNumbers strut_of(const World& w, int k) {
    return {in_global(w.args()->strut_parameters) + w.id * w.args()->stride_strut + k, w.strut_count()};
}
GPUSIM_FN StrutNumbers joint_strut_of(const World& w, int k) {
    return {in_global(w.args()->joint_strut_parameters) + w.id * w.args()->stride_joint_strut + k, w.joint_strut_count()};
}
// Force c0 + c1 y + c3 y^3 on an interval of x, with y = x - at.
struct StrutPiece {
    double at, lower, upper, c0, c1, c3;
};
// Sum of the mean forces of all pieces between a and b, and sum of the derivatives with respect to b.
struct StrutMean {
    double a, b, force, slope;
};
GPUSIM_FN void add_piece(const StrutPiece& p, StrutMean& m) {
    const double span = m.b - m.a;
    double start = m.a, end = m.b, first = 0.0, fraction = 1.0;
    if (span != 0.0) {
        start = clamped(m.a, p.lower, p.upper);
        end = clamped(m.b, p.lower, p.upper);
        first = (start - m.a) / span;
        fraction = (end - start) / span;
    } else if (!(m.a >= p.lower && m.a < p.upper)) {
        return;
    }
    // Simpson's rule is exact for cubic functions.
    const double last = first + fraction, x[3] = {start, 0.5 * (start + end), end}, s[3] = {first, 0.5 * (first + last), last};
    double force = 0.0, slope = 0.0;
    for (int k = 0; k < 3; ++k) {
        const double y = x[k] - p.at, weight = k == 1 ? 4.0 : 1.0;
        force += weight * (p.c0 + y * (p.c1 + p.c3 * y * y));
        slope += weight * s[k] * (p.c1 + 3.0 * p.c3 * y * y);
    }
    m.force += fraction * force / 6.0;
    m.slope += fraction * slope / 6.0;
}
GPUSIM_FN void add_stop(StrutNumbers p, int at, int stiffness, int length, bool below, StrutMean& m) {
    const double infinite = 1.0 / 0.0, k = p[stiffness], d = p[length];
    add_piece({p[at], below ? -infinite : p[at], below ? p[at] : infinite, 0.0, -k, -k / (d * d)}, m);
}
// Add the linear pieces between the points of a table. The first and the last piece extend to infinity.
GPUSIM_FN void add_table(StrutNumbers p, int points, int abscissa, int force, double sign, StrutMean& m) {
    const int count = int(p[points]);
    for (int k = 0; k + 1 < count; ++k) {
        const double x = p[abscissa + k], next = p[abscissa + k + 1], f = sign * p[force + k];
        const double slope = (sign * p[force + k + 1] - f) / (next - x);
        add_piece({x, k ? x : -1.0 / 0.0, k + 2 < count ? next : 1.0 / 0.0, f, slope, 0.0}, m);
    }
}
// Return the mean force of spring and stops between the positions a and b (m).
GPUSIM_SHARED StrutMean strut_spring(StrutNumbers p, double a, double b) {
    StrutMean m = {a, b, 0.0, 0.0};
    add_piece({p[STRUT_REST_LENGTH], -1.0 / 0.0, 1.0 / 0.0, 0.0, -p[STRUT_STIFFNESS], 0.0}, m);
    add_stop(p, STRUT_BUMP_AT, STRUT_BUMP_STIFFNESS, STRUT_BUMP_LENGTH, true, m);
    add_stop(p, STRUT_DROOP_AT, STRUT_DROOP_STIFFNESS, STRUT_DROOP_LENGTH, false, m);
    add_table(p, STRUT_TABLE_POINTS, STRUT_TABLE_LENGTH_0, STRUT_TABLE_FORCE_0, 1.0, m);
    return m;
}
// Return the force of the damper at a velocity (m/s), and half its slope.
GPUSIM_SHARED StrutMean strut_damper(StrutNumbers p, double velocity) {
    StrutMean m = {velocity, velocity, 0.0, 0.0};
    add_piece({0.0, -1.0 / 0.0, 0.0, 0.0, -p[STRUT_BOUND_DAMPING], 0.0}, m);
    add_piece({0.0, 0.0, 1.0 / 0.0, 0.0, -p[STRUT_DAMPING], 0.0}, m);
    add_table(p, STRUT_DAMPER_POINTS, STRUT_DAMPER_VELOCITY_0, STRUT_DAMPER_FORCE_0, -1.0, m);
    return m;
}
GPUSIM_FN double strut_effort(StrutNumbers p, double x, double velocity) {
    return strut_spring(p, x, x).force + strut_damper(p, velocity).force;
}
// Compute the impulse p of the kick, and -dp/du, at the row velocity ``rate`` after the kick.
GPUSIM_FN void strut_kick(const World& w, StrutNumbers p, int axis, double rate, double* impulse, double* slope) {
    const double kick = kick_time(w), x = w.axis_position()[axis];
    if (w.semi_implicit()) {
        const double end = x + w.h * rate;
        const StrutMean spring = strut_spring(p, end, end), damper = strut_damper(p, rate);
        *impulse = kick * (spring.force + damper.force);
        *slope = -kick * (2.0 * w.h * spring.slope + 2.0 * damper.slope);
        return;
    }
    const double before = w.rate()[axis], before_last = w.rate_old()[axis];
    const StrutMean spring = strut_spring(p, x - 0.5 * double(h_prev(w)) * before, x + 0.5 * w.h * rate);
    const StrutMean damper = strut_damper(p, NEXT * rate + (LAST * before + BEFORE_LAST * before_last));
    *impulse = kick * (spring.force + damper.force);
    *slope = -kick * (0.5 * w.h * spring.slope + 2.0 * NEXT * damper.slope);
}
struct StrutLaw {
    StrutNumbers p;
    MEMBER void kick(const World& w, int axis, double rate, double* impulse, double* slope) const {
        strut_kick(w, p, axis, rate, impulse, slope);
    }
};
GPUSIM_FN LawGuess strut_last_guess(const World& w, int k) { return {w.strut_guess(k), w.strut_guess_impulse(k), w.strut_move(k)}; }
GPUSIM_FN LawGuess joint_strut_last_guess(const World& w, int k) {
    return {w.joint_strut_guess(k), w.joint_strut_guess_impulse(k), w.joint_strut_move(k)};
}
GPUSIM_FN void strut_evaluate(const World& w, int k, ActuatorTerm& term) {
    begin_law(w, StrutLaw{strut_of(w, k)}, w.strut_axis()[k], strut_last_guess(w, k), term);
}
GPUSIM_FN void strut_relinearize(const World& w, int k, ActuatorTerm& term) {
    refit_law(w, StrutLaw{strut_of(w, k)}, w.strut_axis()[k], strut_last_guess(w, k), term);
}
GPUSIM_FN void joint_strut_evaluate(const World& w, int k, ActuatorTerm& term) {
    begin_law(w, StrutLaw{joint_strut_of(w, k)}, w.joint_strut_axis()[k], joint_strut_last_guess(w, k), term);
}
GPUSIM_FN void joint_strut_relinearize(const World& w, int k, ActuatorTerm& term) {
    refit_law(w, StrutLaw{joint_strut_of(w, k)}, w.joint_strut_axis()[k], joint_strut_last_guess(w, k), term);
}
