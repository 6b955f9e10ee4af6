// Parts of a hydraulic circuit: valve, edge (orifice), chamber (gpusim/actuators/hydraulic/hydraulics.py).
#pragma once
#include "../accuracy.cuh"
#include "../actuate.cuh"

// Solve x'' + 2 D w x' + w^2 x = K w^2 u exactly for a step with constant u. ``mean`` is the mean of x over the step.
GPUSIM_FN void second_order_valve(double target, double frequency, double damping, double h, double* position, double* rate, double* mean) {
    const double decay = damping * frequency, under = frequency * frequency * (1.0 - damping * damping);
    const double root = sqrt_(abs_(under)), angle = root * h, e = det::exp(-decay * h);
    double c, s;
    if (under >= 0.0) {
        c = e * det::cos(angle);
        s = angle < 1e-4 ? e * h : e * det::sin(angle) / root;
    } else {
        // The exponentials include the decay, because cosh without the decay would overflow.
        const double slow = 0.5 * det::exp(-(decay - root) * h), fast = 0.5 * det::exp(-(decay + root) * h);
        c = slow + fast;
        s = angle < 1e-4 ? e * h : (slow - fast) / root;
    }
    const double offset = *position - target;
    const double new_position = target + offset * (c + decay * s) + *rate * s;
    const double new_rate = *rate * (c - decay * s) - frequency * frequency * offset * s;
    // Integrate the equation over the step to get the mean.
    const double change = (new_rate - *rate) + 2.0 * decay * (new_position - *position);
    *mean = target - change / (frequency * frequency * h);
    *position = new_position;
    *rate = new_rate;
}
// Solve T x' + x = K u exactly for one step with constant u.
GPUSIM_FN void first_order_valve(double target, double time_constant, double h, double* position, double* mean) {
    const double ratio = h / time_constant, offset = *position - target;
    *position = target + offset * det::exp(-ratio);
    *mean = target - offset * det::expm1(-ratio) / ratio;
}
GPUSIM_FN double supply_opening(double x, double overlap) { return max_(0.0, (x - overlap) / (1.0 - overlap)); }
GPUSIM_FN double drain_opening(double x, double overlap) { return max_(0.0, (x + overlap) / (1.0 + overlap)); }

// Return G of an edge, with flow = G * drop.
GPUSIM_FN double edge_conductance(double opened, double drop, double transition, bool linear) {
    const double root = linear ? sqrt_(max_(abs_(drop), transition))
                               : sqrt_(sqrt_(drop * drop + transition * transition));
    return opened / root;
}
// Compute a and b of the pressure p+ = a - b v after an implicit step. v is the velocity of the piston.
GPUSIM_FN void chamber(double pressure, double compliance, double area, double conductance, double inflow, double h, double* a, double* b) {
    const double rate = h / compliance, divisor = 1.0 + rate * conductance;
    *a = (pressure + rate * inflow) / divisor;
    *b = rate * area / divisor;
}
// Return the stroke in the middle of the step, within the stops.
GPUSIM_FN double middle_stroke(double oil, double speed, double low, double high, double h) {
    return clamped(oil + 0.5 * h * speed, min_(low, oil), max_(high, oil));
}
// Store the volume and the index of the greatest void so far.
GPUSIM_FN void watch_void(const World& w, double size, int number) {
    if (size > OIL_MIN_VOID) raise_to(w.void_peak(), tagged(size, number));
}
// Add the end cushions to P and D. End cushions are one-sided springs in the last ``length`` of the stroke at both
// ends.
GPUSIM_FN void stroke_cushions(const World& w, int axis, double x, double low, double high, double stiffness, double damping,
                                   double length, double* impulse, double* slope) {
    if (!(stiffness + damping > 0.0)) return;
    for (int end = 0; end < 2; ++end) {
        const double depth = end == 0 ? x - (low + length) : x - (high - length);
        if (!(end == 0 ? depth < 0.0 : depth > 0.0)) continue;
        double more_impulse, more_slope;
        spring_law(w, axis, stiffness, damping, depth, &more_impulse, &more_slope);
        *impulse += more_impulse;
        *slope += more_slope;
    }
}
