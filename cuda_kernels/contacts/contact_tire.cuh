// Friction of tires by the brush model (equations: gpusim/reference/contacts/contact_tire.py).
#pragma once
#include "contact_laws.cuh"

GPUSIM_FN bool is_tire(const double* law) { return int(law[LAW_AT_FRICTION]) == LAW_TIRE; }
// Return the side (0 or 1) of the wheel.
GPUSIM_FN int wheel_side(const World& w, int m) { return w.shape_kind()[w.pair_shapes()[2 * m + 1]] == SHAPE_WHEEL; }
GPUSIM_FN void wheel_axle(const World& w, int m, double* axle) {
    const int shape = w.pair_shapes()[2 * m + wheel_side(w, m)];
    const double *frame = w.shape_frame() + 9 * shape, axis[3] = {frame[2], frame[5], frame[8]};
    rotate3(w.rotation() + 9 * w.shape_body()[shape], axis, axle);
}
// Set the tangents to the rolling direction and the lateral direction of the wheel.
GPUSIM_FN void tire_tangents(const World& w, int m, real* frame) {
    double axle[3];
    real axis[3], ahead[3];
    wheel_axle(w, m, axle);
    for (int k = 0; k < 3; ++k) axis[k] = real(axle[k]);
    cross3(axis, frame, ahead);
    const real size = sqrt_(dot3(ahead, ahead));
    if (!(size > real(TIRE_FLAT))) return;
    for (int k = 0; k < 3; ++k) frame[3 + k] = ahead[k] / size;
    cross3(frame, frame + 3, frame + 6);
}
// Compute two factors of a drift: the remaining fraction E of a deflection, and the new deflection g per slip speed.
GPUSIM_FN void bristle_step(double h, double rolled, double* decay, double* gain) {
    const double series = 1.0 + 0.5 * rolled * (1.0 + rolled / 3.0 * (1.0 + 0.25 * rolled));
    const double total = 1.0 + rolled * series;
    *decay = 1.0 / total;
    *gain = h * series / total;
}
// Set the values that determine a tire's friction force and camber torque. ``before``: relative twist before the kick.
GPUSIM_FN void set_tire(const World& w, int m, Lane r, const real* before) {
    const double *law = pair_law(w, m), h = w.h, kick = kick_time(w);
    const int side = wheel_side(w, m), shape = w.pair_shapes()[2 * m + side];
    const double radius = w.shape_size()[8 * shape];
    const real* rate = w.twist_before() + 6 * w.shape_body()[shape] + 3;
    Lane p = r + FIRST_POINT;
    double axle[3], spin = 0.0, tilt = 0.0;
    real frame[9];
    take(r + AT_FRAME, 9, frame);
    wheel_axle(w, m, axle);
    for (int k = 0; k < 3; ++k) {
        spin += axle[k] * double(rate[k]);
        tilt += axle[k] * double(frame[k]);
    }
    const double speed = abs_(spin) * (radius + 0.5 * double(p[AT_GAP]));
    r[AT_ROLLING] = real(law[LAW_AT_ROLLING_RESISTANCE] * radius);
    for (int j = 0; j < 2; ++j) {
        const double length = law[LAW_AT_RELAXATION_LENGTH_ALONG + j], slip = dot3(frame + 3 + 3 * j, before) - p[AT_BIAS + 1 + j];
        double decay, gain;
        bristle_step(h, h * speed / length, &decay, &gain);
        const double late = gain / (1.0 + decay), fade = 1.0 + TIRE_FADE * TIRE_DAMPING * speed / length;
        const double damper = TIRE_DAMPING / (fade * fade);
        r[AT_TIRE_KEPT + j] = real(decay);
        r[AT_TIRE_GAIN + j] = real(gain);
        r[AT_TIRE_KNOWN + j] = real(double(p[AT_SLIP + 1 + j]) * (1.0 - damper * speed / length) - late * slip);
        r[AT_TIRE_SLOPE + j] = real(late + damper);
        r[AT_TIRE_STIFFNESS + j] = real(kick * law[LAW_AT_SLIP_STIFFNESS_ALONG + j] / length);
        r[AT_TIRE_SHARES + j] = real(1.0 / law[LAW_AT_FRICTION_ELLIPSE_ALONG + j]);
    }
    const double width = law[LAW_AT_WIDTH], square = width * width / 12.0, stiff = square * law[LAW_AT_STIFFNESS];
    const double camber_rate = dot3(frame + 3, before + 3);
    r[AT_CAMBER] = real(-kick * stiff * ((side ? tilt : -tilt) - 0.25 * double(h_prev(w)) * camber_rate));
    r[AT_CAMBER + 1] = real(kick * (0.25 * h * stiff + square * law[LAW_AT_DAMPING_COEFFICIENT]));
    r[AT_CAMBER + 2] = real(width);
}
// Return the factor G of the friction force. ``theta`` is theta_0, and b is beta/3.
template <class N> GPUSIM_FN N brush_factor(N theta, N b) {
    const N one = Every<N>::of(real(1)), none = Every<N>::of(real(0)), c = one + b - theta;
    const auto sticks = c > none;
    // Start Newton's method above the root, because the cubic is convex.
    N z = choose(sticks & (c < one), c, one);
    for (int step = 0; step < TIRE_STEPS; ++step) {
        const N square = z * z;
        z = z - (z + b * square * z - c) / (one + real(3) * b * square);
    }
    const N complement = one - z;
    return choose(sticks, N(z + real(1.0 / 3.0) * complement * complement),
                  N(real(1.0 / 3.0) / choose(sticks, one, N(theta - b))));
}
// Solve brush friction of a point. The arguments are the same as for ``coulomb`` (contact_laws.cuh).
template <class R, class N> GPUSIM_FN void brush(R r, N limit, const N* mass, N u1, N u2, N* p) {
    const N one = Every<N>::of(real(1)), none = Every<N>::of(real(0)), small = Every<N>::of(real(MIN_NUMBER));
    const N k11 = mass[0], k12 = mass[1], k22 = mass[2], slope1 = r[AT_TIRE_SLOPE], slope2 = r[AT_TIRE_SLOPE + 1];
    const N f1 = u1 - (k11 * p[0] + k12 * p[1]), f2 = u2 - (k12 * p[0] + k22 * p[1]);
    const N e1 = r[AT_TIRE_KNOWN] + slope1 * f1, e2 = r[AT_TIRE_KNOWN + 1] + slope2 * f2;
    const N q1 = r[AT_TIRE_STIFFNESS], q2 = r[AT_TIRE_STIFFNESS + 1];
    // (1 + G M) e = e_free. A size is the impulse without sliding, divided by the semi-axes of the friction ellipse.
    const N m11 = slope1 * k11 * q1, m12 = slope1 * k12 * q2, m21 = slope2 * k12 * q1, m22 = slope2 * k22 * q2;
    const N s1 = q1 * r[AT_TIRE_SHARES], s2 = q2 * r[AT_TIRE_SHARES + 1];
    const N bound = max_(N(real(3) * limit), small), minimum = Every<N>::of(real(TIRE_MIN));
    N g = one, d1 = none, d2 = none, size = none;
    for (int step = 0;; ++step) {
        const N a = one + g * m11, b = g * m12, c = g * m21, d = one + g * m22, det = a * d - b * c;
        d1 = (d * e1 - b * e2) / det;
        d2 = (a * e2 - c * e1) / det;
        const N x = s1 * d1, y = s2 * d2;
        size = sqrt_(N(x * x + y * y));
        if (step == TIRE_PASSES) break;
        // ``falls``: relative decrease of the size per change of G.
        const N w1 = m11 * d1 + m12 * d2, w2 = m21 * d1 + m22 * d2, t1 = (d * w1 - b * w2) / det, t2 = (a * w2 - c * w1) / det;
        const N falls = max_(N((x * s1 * t1 + y * s2 * t2) / max_(N(x * x + y * y), small)), none);
        const N free = max_(N(one - g * falls), minimum);
        g = brush_factor(N(size / (free * bound)), N(real(1.0 / 3.0) * falls / free));
    }
    g = g * min_(one, N(limit / max_(N(g * size), small)));
    p[0] = choose(limit > none, N(-q1 * g * d1), none);
    p[1] = choose(limit > none, N(-q2 * g * d2), none);
}
GPUSIM_FN real camber_torque(Lane r, real load, real rate, real response, real old) {
    const real slope = r[AT_CAMBER + 1], now = (r[AT_CAMBER] - slope * (rate - response * old)) / (real(1) + slope * response);
    const real size = abs_(now), edge = load * r[AT_CAMBER + 2] * real(1.0 / 6.0);
    if (!(size > edge)) return now;
    const real limited = real(3) * edge - real(2) * edge * sqrt_(edge / size);
    return now < real(0) ? -limited : limited;
}
