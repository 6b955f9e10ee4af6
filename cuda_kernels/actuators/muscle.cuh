// Muscles with MuJoCo's curves and activation (gpusim/actuators/muscle.py).
#pragma once
#include "refitted_law.cuh"

// Value and slope of a curve.
struct MuscleCurve {
    double value, slope;
};
GPUSIM_FN double muscle_unit(const World& w, int k) {
    return (w.muscle_length_upper(k) - w.muscle_length_lower(k)) / (w.muscle_range_upper(k) - w.muscle_range_lower(k));
}
GPUSIM_FN double muscle_normalized(const World& w, int k, double length) {
    return w.muscle_range_lower(k) + (length - w.muscle_length_lower(k)) / muscle_unit(w, k);
}
// Active force as a function of the normalized length.
GPUSIM_FN MuscleCurve muscle_force_length(const World& w, int k, double length) {
    const double min_length = w.muscle_lmin(k), max_length = w.muscle_lmax(k), rise = 0.5 * (1.0 - min_length), fall = 0.5 * (max_length - 1.0);
    if (length < min_length || length > max_length) return {0.0, 0.0};
    if (length <= 1.0) {
        const bool low = length <= min_length + rise;
        const double x = (low ? length - min_length : 1.0 - length) / rise;
        return {low ? 0.5 * x * x : 1.0 - 0.5 * x * x, x / rise};
    }
    const bool low = length <= 1.0 + fall;
    const double x = (low ? length - 1.0 : max_length - length) / fall;
    return {low ? 1.0 - 0.5 * x * x : 0.5 * x * x, -x / fall};
}
// Active force as a function of the normalized velocity.
GPUSIM_FN MuscleCurve muscle_force_velocity(double max_force, double velocity) {
    const double end = max_force - 1.0, x = velocity + 1.0, y = end - velocity;
    if (velocity <= -1.0) return {0.0, 0.0};
    if (velocity <= 0.0) return {x * x, 2.0 * x};
    if (velocity <= end) return {max_force - y * y / end, 2.0 * y / end};
    return {max_force, 0.0};
}
// Return the mean passive force from a to b, and its derivative with respect to b. a and b are scaled lengths: 0 is the
// optimum length, and 1 is midway to lmax. If a = b, return the force and half its slope.
GPUSIM_FN MuscleCurve muscle_passive(double a, double b) {
    const double span = b - a;
    MuscleCurve mean = {0.0, 0.0};
    for (int piece = 0; piece < 2; ++piece) {
        const double lower = piece ? 1.0 : 0.0, upper = piece ? 1.0 / 0.0 : 1.0;
        double start = a, end = b, first = 0.0, fraction = 1.0;
        if (span != 0.0) {
            start = clamped(a, lower, upper);
            end = clamped(b, lower, upper);
            first = (start - a) / span;
            fraction = (end - start) / span;
        } else if (!(a >= lower && a < upper)) {
            continue;
        }
        // Simpson's rule is exact for quadratic functions.
        const double x[3] = {start, 0.5 * (start + end), end}, s[3] = {first, first + 0.5 * fraction, first + fraction};
        for (int k = 0; k < 3; ++k) {
            const double weight = fraction / 6.0 * (k == 1 ? 4.0 : 1.0);
            mean.value += weight * (piece ? x[k] - 0.5 : 0.5 * x[k] * x[k]);
            mean.slope += weight * s[k] * (piece ? 1.0 : x[k]);
        }
    }
    return mean;
}
// Return the force along the length, N, at a length, m, and its rate, m/s.
GPUSIM_FN double muscle_force(const World& w, int k, double length, double velocity, double activation) {
    const double at = muscle_normalized(w, k, length), speed = velocity / (muscle_unit(w, k) * w.muscle_vmax(k));
    const double curve = muscle_force_velocity(w.muscle_fvmax(k), speed).value;
    const double active = activation * muscle_force_length(w, k, at).value * curve;
    const double x = (at - 1.0) / (0.5 * (w.muscle_lmax(k) - 1.0));
    return -w.muscle_peak_force(k) * (active + w.muscle_fpmax(k) * muscle_passive(x, x).value);
}
// Law of a muscle for one kick: impulse = constant - active FV(per_rate (weight rate +
// known)) - spring rate - passive FP.
struct MuscleLaw {
    double constant, active, spring, per_rate, weight, known, fvmax, passive, here, ahead, behind;
    bool semi_implicit;
    MEMBER void kick(const World&, int, double rate, double* impulse, double* slope) const {
        const MuscleCurve curve = muscle_force_velocity(fvmax, per_rate * (weight * rate + known));
        const double end = here + ahead * rate;
        const MuscleCurve mean = muscle_passive(semi_implicit ? end : behind, end);
        *impulse = constant - active * curve.value - spring * rate - passive * mean.value;
        *slope = active * curve.slope * per_rate * weight + spring;
        *slope += passive * (semi_implicit ? 2.0 * mean.slope : mean.slope) * ahead;
    }
};
GPUSIM_FN MuscleLaw muscle_law(const World& w, int k) {
    const int axis = w.muscle_axis()[k];
    const double gear = w.muscle_gear(k), peak = w.muscle_peak_force(k), unit = muscle_unit(w, k), kick = kick_time(w);
    const double before = w.rate()[axis], before_last = w.rate_old()[axis], activation = w.muscle_activation(k);
    const double length = muscle_normalized(w, k, gear * double(w.axis_position()[axis]));
    const double half = 0.5 * (w.muscle_lmax(k) - 1.0), length_scale = gear / (unit * half);
    const MuscleCurve active = muscle_force_length(w, k, length);
    MuscleLaw law;
    law.semi_implicit = w.semi_implicit() != 0;
    const double last = law.semi_implicit ? 0.0 : double(h_prev(w));
    law.per_rate = gear / (unit * w.muscle_vmax(k));
    law.fvmax = w.muscle_fvmax(k);
    law.weight = law.semi_implicit ? 1.0 : NEXT;
    law.known = law.semi_implicit ? 0.0 : LAST * before + BEFORE_LAST * before_last;
    const double now = muscle_force_velocity(law.fvmax, law.per_rate * before).value;
    const double spring = max_(gear * gear * peak / unit * activation * active.slope * now, 0.0);
    law.spring = kick * (law.semi_implicit ? w.h : 0.25 * w.h) * spring;
    law.active = kick * gear * peak * activation * active.value;
    law.constant = kick * spring * 0.25 * last * before;
    law.passive = kick * gear * peak * w.muscle_fpmax(k);
    law.here = (length - 1.0) / half;
    law.ahead = (law.semi_implicit ? 1.0 : 0.5) * w.h * length_scale;
    law.behind = law.here - 0.5 * last * length_scale * before;
    return law;
}
GPUSIM_FN LawGuess muscle_last_guess(const World& w, int k) { return {w.muscle_guess(k), w.muscle_guess_impulse(k), w.muscle_move(k)}; }
GPUSIM_FN void muscle_evaluate(const World& w, int k, ActuatorTerm& term) {
    begin_law(w, muscle_law(w, k), w.muscle_axis()[k], muscle_last_guess(w, k), term);
}
GPUSIM_FN void muscle_relinearize(const World& w, int k, ActuatorTerm& term) {
    refit_law(w, muscle_law(w, k), w.muscle_axis()[k], muscle_last_guess(w, k), term);
}
// Return the time constant of the activation, s.
GPUSIM_FN double muscle_time_constant(const World& w, int k, double excitation, double activation) {
    const double difference = excitation - activation, factor = 0.5 + 1.5 * activation, width = w.muscle_tausmooth(k);
    const double rise = w.muscle_tau_act(k) * factor, fall = w.muscle_tau_deact(k) / factor;
    double blend = difference > 0.0 ? 1.0 : 0.0;
    if (width > 0.0) {
        const double x = clamped(difference / width + 0.5, 0.0, 1.0);
        blend = x * x * x * (3.0 * x * (2.0 * x - 5.0) + 10.0);
    }
    return fall + (rise - fall) * blend;
}
// Advance the activation by one step with the Runge-Kutta method of order 4. The step uses the new excitation.
GPUSIM_FN void muscle_advance(const World& w, int k) {
    const double excitation = double(real(w.muscle_excitation_now(k))), difference = double(w.muscle_activation(k)) - excitation;
    double rate = 0.0, sum = 0.0;
    for (int n = 0; n < 4; ++n) {
        const double z = (n == 3 ? 1.0 : 0.5) * w.h * rate;
        rate = 1.0 / muscle_time_constant(w, k, excitation, excitation + difference * det::exp(-z));
        sum += n == 1 || n == 2 ? 2.0 * rate : rate;
    }
    w.muscle_activation(k) = stored(excitation + difference * det::exp(-w.h * (sum / 6.0)));
}
