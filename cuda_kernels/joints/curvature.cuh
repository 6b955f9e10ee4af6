// Curvature bias of rows (equations: gpusim/reference/joints/curvature.py).
#pragma once
#include "rows.cuh"

// Compute I (omega - omega_kicked) from the impulses of body b, world frame.
GPUSIM_FN void momentum_change(const World& w, int b, real* out) {
    real change[3];
    double copy[9];
    const double* rotation = load_matrix(w.rotation(), b, copy);
    subtract3(w.twist() + 6 * b + 3, w.twist_kicked() + 6 * b + 3, change);
    rotate_back3(rotation, change, change);
    rotate3(w.inertia() + 9 * b, change, change);
    rotate3(rotation, change, out);
}

GPUSIM_FN mask is_round(const real* m) {
    return (m[0] == m[4]) & (m[0] == m[8]) & (m[1] == real(0)) & (m[2] == real(0)) & (m[3] == real(0)) & (m[5] == real(0)) &
           (m[6] == real(0)) & (m[7] == real(0));
}
// Compute omega_mid by Newton passes of the midpoint rule, in the axes that the body has at the start of the step.
template <class T> GPUSIM_FN void midpoint_passes(const T* inertia, const T* momentum, real half, T* rate) {
    T slope[9], cross[9];
    skew3(momentum, cross);
    for (int k = 0; k < 9; ++k) cross[k] = inertia[k] - half * cross[k];
    inverse33(cross, slope);
    rotate3(slope, momentum, rate);
    for (int pass = 1; pass < MIDPOINT_PASSES; ++pass) {
        T t[3], first[3], second[3], error[3];
        for (int k = 0; k < 3; ++k) t[k] = half * rate[k];
        const T square = dot3(t, t);
        const T tangent = real(0.5) + square * (real(1.0 / 24.0) + square * real(1.0 / 240.0));
        for (int k = 0; k < 3; ++k) t[k] = tangent * t[k];
        const T factor = real(2) / (real(1) + tangent * tangent * square);
        cross3(t, momentum, first);
        cross3(t, first, second);
        rotate3(inertia, rate, error);
        for (int k = 0; k < 3; ++k) error[k] = error[k] - (momentum[k] - factor * (first[k] - second[k]));
        rotate3(slope, error, first);
        for (int k = 0; k < 3; ++k) rate[k] = rate[k] - first[k];
    }
}
GPUSIM_FN mask is_slow(real angle) { return !(angle > real(SLOW_ROTATION)); }
GPUSIM_FN void midpoint_rate(const World& w, int b, const real* twist, real* out) {
    double copy[9];
    const double* rotation = load_matrix(w.rotation(), b, copy);
    const real *inertia = w.inertia() + 9 * b, half = real(0.5 * w.h);
    const mask round = is_round(inertia) | is_slow(real(w.h) * norm3(twist + 6 * b + 3));
    if (all(round)) return copy3(twist + 6 * b + 3, out);
    real rate[3], momentum[3];
    rotate_back3(rotation, twist + 6 * b + 3, rate);
    rotate3(inertia, rate, momentum);
    midpoint_passes(inertia, momentum, half, rate);
    rotate3(rotation, rate, out);
    for (int k = 0; k < 3; ++k) out[k] = choose(round, twist[6 * b + 3 + k], out[k]);
}

// Compute the axis of a rotor in the world frame, and return its spin (gpusim/reference/rotors.py). Return 0 for other
// bodies.
GPUSIM_FN real rotor_spin(const World& w, int b, real* axis) {
    real local_axis[3];
    for (int k = 0; k < 3; ++k) local_axis[k] = real(w.rotor()[4 * b + k]);
    rotate3(w.rotation() + 9 * b, local_axis, axis);
    return dot3(w.twist() + 6 * b + 3, axis);
}
GPUSIM_FN real nutation(const World& w, int b, real spin) { return abs_(spin) * real(w.h) * real(w.rotor()[4 * b + 3]); }
// Return the rotation of body b in the substep, without the spin of a rotor.
GPUSIM_FN real rotation_angle_of(const World& w, int b) {
    const real *omega = w.twist() + 6 * b + 3, angle = real(w.h) * norm3(omega);
    if (!w.rotors() || !(w.rotor()[4 * b + 3] > 0.0)) return angle;
    real axis[3], transverse[3];
    const real spin = rotor_spin(w, b, axis);
    for (int k = 0; k < 3; ++k) transverse[k] = omega[k] - spin * axis[k];
    const real swing = real(w.h) * norm3(transverse);
    return choose((nutation(w, b, spin) > real(MAX_NUTATION)) & (swing > real(MIN_SWING)), angle, swing);
}

// Compute omega_mid of body b, and its rotation operators E (first 9 numbers) and T (last 9 numbers).
GPUSIM_FN void bend_one(const World& w, int b) {
    // A CPU computes the operators in place, and a GPU in registers.
    real *middle = w.midpoint() + 3 * b, *out = w.rotation_terms() + 18 * b, copy[18], *operator_e = PAIRED ? copy : out;
    real* operator_t = operator_e + 9;
    const real h = real(w.h), *omega = w.twist() + 6 * b + 3;
    w.rotation_angle()[b] = rotation_angle_of(w, b);
    const mask is_at_rest = (omega[0] == real(0)) & (omega[1] == real(0)) & (omega[2] == real(0));
    if (all(is_at_rest)) {
        for (int k = 0; k < 18; ++k) operator_e[k] = real(0);
        for (int k = 0; k < 3; ++k) middle[k] = omega[k];
        if (PAIRED) write_numbers<18>(operator_e, out);
        return;
    }
    midpoint_rate(w, b, w.twist(), middle);
    real theta[3], correction[3], skew[9], square[9], sine, cosine;
    for (int k = 0; k < 3; ++k) {
        theta[k] = h * middle[k];
        correction[k] = theta[k] - h * omega[k];
    }
    skew3(theta, skew);
    skew_square3(theta, square);
    rotation_factors(dot3(theta, theta), &sine, &cosine);
    skew3(correction, operator_t);
    for (int k = 0; k < 9; ++k) {
        const real bend = sine * skew[k] + cosine * square[k];
        operator_e[k] = choose(is_at_rest, real(0), skew[k] + bend);
        operator_t[k] = choose(is_at_rest, real(0), bend + operator_t[k]);
    }
    if (PAIRED) write_numbers<18>(operator_e, out);
    for (int k = 0; k < 3; ++k) middle[k] = choose(is_at_rest, omega[k], middle[k]);
}

#if VECTOR_BODIES
// Do the same for eight bodies at once. Return false if a body rotates too far for the power series.
GPUSIM_FN bool bend_eight(const World& w, int first) {
    typedef BodyVector V;
    const real h = real(w.h);
    V inertia[9], rotation[9], omega[3], momentum[3], middle[3], skew[9], square[9], correction[9], sine, cosine;
    bool rests[VECTOR_BODIES], straight[VECTOR_BODIES], bends = false;
    for (int l = 0; l < VECTOR_BODIES; ++l) {
        const int b = min_(first + l, w.bodies() - 1);
        const real* rate = w.twist() + 6 * b + 3;
        const real angle = w.rotation_angle()[b] = h * norm3(rate);
        rests[l] = rate[0] == real(0) && rate[1] == real(0) && rate[2] == real(0);
        straight[l] = is_round(w.inertia() + 9 * b) || is_slow(angle);
        bends |= !straight[l];
        for (int k = 0; k < 9; ++k) {
            inertia[k].v[l] = w.inertia()[9 * b + k];
            rotation[k].v[l] = real(w.rotation()[9 * b + k]);
        }
        for (int k = 0; k < 3; ++k) omega[k].v[l] = rate[k];
    }
    if (bends) {
        rotate_back3(rotation, omega, middle);
        rotate3(inertia, middle, momentum);
        midpoint_passes(inertia, momentum, real(0.5 * w.h), middle);
        rotate3(rotation, middle, middle);
    }
    for (int l = 0; l < VECTOR_BODIES; ++l)
        for (int k = 0; straight[l] && k < 3; ++k) middle[k].v[l] = omega[k].v[l];
    V theta[3], rest[3];
    for (int k = 0; k < 3; ++k) {
        theta[k] = h * middle[k];
        rest[k] = theta[k] - h * omega[k];
    }
    skew3(theta, skew);
    skew_square3(theta, square);
    skew3(rest, correction);
    const V angle_square = dot3(theta, theta);
    for (int l = 0; l < VECTOR_BODIES; ++l)
        if (angle_square.v[l] > real(SERIES_BELOW)) return false;
    small_rotation_factors(angle_square, &sine, &cosine);
    for (int k = 0; k < 9; ++k) {
        const V bend = sine * skew[k] + cosine * square[k];
        skew[k] = skew[k] + bend;
        correction[k] = bend + correction[k];
    }
    for (int l = 0; l < VECTOR_BODIES && first + l < w.bodies(); ++l) {
        real* out = w.rotation_terms() + 18 * (first + l);
        for (int k = 0; k < 9; ++k) {
            out[k] = rests[l] ? real(0) : skew[k].v[l];
            out[9 + k] = rests[l] ? real(0) : correction[k].v[l];
        }
        for (int k = 0; k < 3; ++k) w.midpoint()[3 * (first + l) + k] = middle[k].v[l];
    }
    return true;
}
// Item: one body, or eight bodies on a CPU.
GPUSIM_FN int bend_items(const World& w) { return (w.bodies() + VECTOR_BODIES - 1) / VECTOR_BODIES; }
GPUSIM_PHASE void bend_body(const World& w, int item) {
    const int first = VECTOR_BODIES * item, end = min_(first + VECTOR_BODIES, w.bodies());
    if (end - first > 2 && !w.rotors() && bend_eight(w, first)) return;
    for (int b = first; b < end; ++b) bend_one(w, b);
}
#else
GPUSIM_FN int bend_items(const World& w) { return w.bodies(); }
GPUSIM_PHASE void bend_body(const World& w, int b) { bend_one(w, b); }
#endif

// Compute the change of the separation in a dot element over the step, and this change minus h J v.
GPUSIM_FN void dot_change(const World& w, int e, const real* keep, real* change, real* nonlinear) {
    const int a = w.dot_body_a()[e], b = w.dot_body_b()[e];
    const real h = real(w.h), linear = real(h * real(w.dot_linear()[e])), *arm_a = keep + 3, *vector_b = keep + 6;
    real of_a[3], copy_a[18], copy_b[18];
    const real *terms_a = load_numbers<18>(w.rotation_terms() + 18 * a, copy_a), *terms_b = load_numbers<18>(w.rotation_terms() + 18 * b, copy_b);
    rotate3(terms_b, vector_b, change);
    rotate3(terms_a, arm_a, of_a);
    for (int k = 0; k < 3; ++k)
        change[k] = (w.twist()[6 * b + k] - w.twist()[6 * a + k]) * linear + (change[k] - of_a[k]);
    rotate3(terms_b + 9, vector_b, nonlinear);
    rotate3(terms_a + 9, arm_a, of_a);
    subtract3(nonlinear, of_a, nonlinear);
}
// Compute the sum T^T sep + beyond + E^T change for all dots of a point with axes u in one body. T and E are the
// rotation operators of this body. The bias is u . sum / h.
GPUSIM_FN void dot_bias_vector(const World& w, int e, const real* sep, const real* change, const real* nonlinear, real* bias_vector) {
    real of_u[3], copy[18];
    const real* terms = load_numbers<18>(w.rotation_terms() + 18 * w.dot_body_u()[e], copy);
    rotate_back3(terms + 9, sep, bias_vector);
    rotate_back3(terms, change, of_u);
    for (int k = 0; k < 3; ++k) bias_vector[k] = (bias_vector[k] + nonlinear[k]) + of_u[k];
}

// Compute a vector of a body after the step, in the world frame: (1 + E) R v.
template <class V> GPUSIM_FN void rotated_after(const World& w, int body, const V* vector, double* out) {
    double change[3];
    rotate3(w.rotation() + 9 * body, vector, out);
    rotate3(w.rotation_terms() + 18 * body, out, change);
    for (int k = 0; k < 3; ++k) out[k] += change[k];
}
GPUSIM_FN real total_rotation_bias(const World& w, int e, const real* u) {
    const int ends[2] = {w.spin_body_a()[e], w.spin_body_b()[e]};
    double q[8], vector[3];
    for (int s = 0; s < 2; ++s) {
        double rotation_vector[3], spin[4];
        for (int k = 0; k < 3; ++k) rotation_vector[k] = w.h * double(w.midpoint()[3 * ends[s] + k]);
        quaternion_from_rotation_vector(rotation_vector, spin);
        quaternion_product(spin, w.orientation() + 4 * ends[s], q + 4 * s);
    }
    relative_rotation(w, e, q, q + 4, vector);
    const double rate = (norm3(vector) - w.element_value()[w.dots() + e]) / w.h;
    real angular_velocity[3];
    subtract3(w.twist() + 6 * ends[1] + 3, w.twist() + 6 * ends[0] + 3, angular_velocity);
    return real(rate - double(dot3(u, angular_velocity)));
}
GPUSIM_FN real ordered_bias(const World& w, int e, const real* u) {
    const int k = w.spin_angle()[e], a = w.spin_body_a()[e], b = w.spin_body_b()[e];
    double axis[3], ref_a[3], ref_b[3];
    rotated_after(w, w.angle_owner()[k], w.angle_axis() + 3 * k, axis);
    rotated_after(w, a, w.angle_ref_a() + 3 * k, ref_a);
    rotated_after(w, b, w.angle_ref_b() + 3 * k, ref_b);
    double change = reference_angle(w.angle_middle()[k], axis, ref_a, ref_b) - w.element_value()[w.dots() + e];
    change -= det::TWO_PI * det::round_even(change / det::TWO_PI);
    real angular_velocity[3];
    subtract3(w.twist() + 6 * b + 3, w.twist() + 6 * a + 3, angular_velocity);
    return real(change / w.h - double(dot3(u, angular_velocity)));
}
GPUSIM_FN real spin_bias(const World& w, int e, const real* u) {
    if (w.spin_component()[e] >= OUTER) return ordered_bias(w, e, u);
    if (w.spin_component()[e] == 3) return total_rotation_bias(w, e, u);
    const int a = w.spin_body_a()[e], b = w.spin_body_b()[e];
    real axis[3], middle[3], angular_velocity[3];
    rotate3(w.rotation_terms() + 18 * w.spin_owner()[e], u, axis);
    for (int k = 0; k < 3; ++k) axis[k] = u[k] + real(0.5) * axis[k];
    subtract3(w.midpoint() + 3 * b, w.midpoint() + 3 * a, middle);
    subtract3(w.twist() + 6 * b + 3, w.twist() + 6 * a + 3, angular_velocity);
    return dot3(axis, middle) - dot3(u, angular_velocity);
}

GPUSIM_FN real line_bias(const World& w, int e, const real* keep) {
    const int a = w.line_body_a()[e], b = w.line_body_b()[e];
    const real h = real(w.h), *arm_a = keep, *arm_b = keep + 3, *sep = keep + 6, *unit = keep + 9, length = keep[12];
    real change[3], of_a[3], nonlinear[3], new_sep[3];
    rotate3(w.rotation_terms() + 18 * b, arm_b, change);
    rotate3(w.rotation_terms() + 18 * a, arm_a, of_a);
    for (int k = 0; k < 3; ++k)
        change[k] = h * (w.twist()[6 * b + k] - w.twist()[6 * a + k]) + (change[k] - of_a[k]);
    rotate3(w.rotation_terms() + 18 * b + 9, arm_b, nonlinear);
    rotate3(w.rotation_terms() + 18 * a + 9, arm_a, of_a);
    subtract3(nonlinear, of_a, nonlinear);
    // |w + c| - |w| - n.(c - beyond), with s = |w + c| + |w|, without cancellation.
    for (int k = 0; k < 3; ++k) new_sep[k] = sep[k] + change[k];
    const real length_sum = norm3(new_sep) + length, safe = choose(length_sum > real(0), length_sum, real(1));
    const real square = dot3(change, change), along = dot3(unit, change);
    const real stretch = (real(2) * dot3(sep, change) + square) / safe;
    return (dot3(unit, nonlinear) + (square - along * stretch) / safe) / h;
}

#if GPUSIM_WRAPS
// Positions and vectors of bodies after the step, in the world frame.
struct PosesAfterStep {
    const World& w;
    const double* position;
    template <class V> MEMBER void world_vector(int body, const V* vector, double* out) const { rotated_after(w, body, vector, out); }
    template <class V> MEMBER void world_point(int body, const V* point, double* out) const {
        world_vector(body, point, out);
        for (int k = 0; k < 3; ++k) out[k] = position[3 * body + k] + w.h * double(w.twist()[6 * body + k]) + out[k];
    }
};
// Return J v of line e, from the stored numbers of the element.
GPUSIM_FN double line_rate(const World& w, int e, const real* keep) {
    const real *a = w.twist() + 6 * w.line_body_a()[e], *b = w.twist() + 6 * w.line_body_b()[e];
    real side_a[3], side_b[3], slip[3];
    cross3(a + 3, keep, side_a);
    cross3(b + 3, keep + 3, side_b);
    for (int k = 0; k < 3; ++k) slip[k] = (b[k] + side_b[k]) - (a[k] + side_a[k]);
    return double(dot3(keep + 9, slip));
}
// Return the bias of a wrapped path. The first line stores the bias of both lines.
GPUSIM_FN real wrapped_bias(const World& w, int e, const real* keep) {
    const int i = w.line_wrap()[e] / 2, element = w.dots() + w.spins() + e;
    if (w.line_wrap()[e] % 2) return real(0);
    double in[WRAP_INPUTS], out[WRAP_OUTPUTS], leg_a[3], leg_b[3];
    wrap_inputs(w, PosesAfterStep{w, w.position()}, i, in);
    wrap_path(w, i, in, out);
    subtract3(out, in, leg_a);
    subtract3(in + 3, out + 3, leg_b);
    const double before = w.element_value()[element] + w.element_value()[element + 1];
    const double rate = (norm3(leg_a) + out[6] + norm3(leg_b) - before) / w.h;
    return real(rate - line_rate(w, e, keep) - line_rate(w, e + 1, keep + VECTORS));
}
#endif

// With the direct solver, swept joints keep the bias of the predicted velocities.
GPUSIM_FN bool keeps_bias(const World& w, int row) {
#if GPUSIM_SWEPT
    return is_swept_row(w, row) && *w.since_factor() > 0;
#else
    return (void)w, (void)row, false;
#endif
}
// Store the bias of element e and of its row. ``angle`` is the rotation of the body that rotates more.
GPUSIM_FN void store_bias(const World& w, int e, real angle, real bias) {
    // Reduce the bias at large rotations, to keep the step stable.
    const mask far = angle > real(FULL_BIAS_BELOW);
    if (any(far)) {
        const real ratio = real(FULL_BIAS_BELOW) / angle;
        bias = choose(far, bias * (ratio * ratio), bias);
    }
    w.element_bias()[e] = bias;
    const int row = w.element_row()[e];
    if (row >= 0 && !keeps_bias(w, row)) w.bias()[row] = bias;
}
GPUSIM_PHASE void bend_element(const World& w, int item) {
    const ElementPart part = element_part(w, item);
    const int dots = w.dots(), spins = w.spins(), first = part.first;
    const real* vectors = w.element_vectors() + VECTORS * first;
    const real angle = max_(w.rotation_angle()[w.element_body_a()[first]], w.rotation_angle()[w.element_body_b()[first]]);
#if GPUSIM_WRAPS
    if (first >= dots + spins && w.line_wrap()[first - dots - spins] >= 0)
        return store_bias(w, first, angle, wrapped_bias(w, first - dots - spins, vectors));
#endif
    if (first >= dots + spins) return store_bias(w, first, angle, line_bias(w, first - dots - spins, vectors));
    // If bodies rotate slowly, the rows of dots and spins change by h J v. Lines still have a curvature bias.
    const mask straight = is_slow(angle);
    if (all(straight)) {
        for (int e = first; e < part.end; ++e) store_bias(w, e, angle, real(0));
        return;
    }
    if (first >= dots) return store_bias(w, first, angle, choose(straight, real(0), spin_bias(w, first - dots, vectors)));
    real change[3], nonlinear[3], copy[12];
    const real* keep = load_numbers<12>(vectors, copy);
    dot_change(w, first, keep, change, nonlinear);
    const real inverse_h = real(1) / real(w.h);
    real bias_vector[3];
    for (int e = first; e < part.end; ++e, keep += VECTORS) {
        if (e == first || w.dot_body_u()[e] != w.dot_body_u()[e - 1]) dot_bias_vector(w, e, keep + 9, change, nonlinear, bias_vector);
        store_bias(w, e, angle, choose(straight, real(0), dot3(keep, bias_vector) * inverse_h));
    }
}
GPUSIM_SHARED double curve_bias(const World& w, int c, int e, double x) {
    Element element;
    evaluate(w, e, element, nullptr);
    real ends[12];
    for (int k = 0; k < 6; ++k) {
        ends[k] = real(element.a[k]);
        ends[6 + k] = real(element.b[k]);
    }
    const real rate = dot6(ends, w.twist() + 6 * w.element_body_a()[e]) + dot6(ends + 6, w.twist() + 6 * w.element_body_b()[e]);
    const double r = double(rate + w.element_bias()[e]), d = w.h * r;
    const double c2 = w.coupling_curve()[3 * c], c3 = w.coupling_curve()[3 * c + 1], c4 = w.coupling_curve()[3 * c + 2];
    return r * d * (c2 + x * (3.0 * c3 + x * (6.0 * c4)) + d * (c3 + x * (4.0 * c4) + d * c4));
}
GPUSIM_PHASE void bend_coupling(const World& w, int c) {
    if (keeps_bias(w, w.coupling_row()[c])) return;
    int term = w.coupling_start()[c];
    const int e = w.coupling_element()[term];
    double factor = w.coupling_factor()[term], curve_part = 0.0;
    if (w.coupling_curved()[c]) {
        factor += curve_slope(w, c, w.element_value()[e]);
        curve_part = curve_bias(w, c, e, w.element_value()[e]);
    }
    double bias = factor * w.element_bias()[e];
    while (++term < w.coupling_start()[c + 1]) bias += w.coupling_factor()[term] * w.element_bias()[w.coupling_element()[term]];
    if (w.coupling_curved()[c]) bias += curve_part;
    w.bias()[w.coupling_row()[c]] = real(bias);
}
// Compute the velocity of axis row k after the solve.
GPUSIM_PHASE void next_rate(const World& w, int k) {
    const int row = w.axis_row()[k];
    w.rate_next()[k] = row_velocity(w, row, w.twist()) + w.bias()[row];
}
// Predict the velocities after the solve, for the first curvature bias: extrapolate the last three velocities, unless
// the acceleration changes a lot. With the direct solver, the prediction would open joints near singular poses of loops.
GPUSIM_PHASE void predict_body(const World& w, int b) {
    if (!w.dynamic()[b]) return;
    const double before = *w.kick_before(), last = *w.kick_before_last(), time = double(kick_time(w)), none = 0.0;
    const mask spins = w.rotors() ? *w.spinning() != whole(0) : mask(false);
    const mask known = (before > none) & (last > none) & (spins | mask(!w.loop_constraints()));
    const double newer_share = choose(known, time / before, none), older_share = choose(known, time / last, none);
    for (int part = 0; part < 2; ++part) {
        const stored* v1 = part == 0 ? w.linear_velocity() + 3 * b : w.angular_momentum() + 3 * b;
        const stored *v2 = w.velocity_before() + 6 * b + 3 * part, *v3 = w.velocity_before_last() + 6 * b + 3 * part;
        double last_velocity[3], newer[3], change[3];
        real predicted[3], *out = w.twist() + 6 * b + 3 * part;
        for (int k = 0; k < 3; ++k) {
            last_velocity[k] = double(v1[k]);
            newer[k] = (last_velocity[k] - double(v2[k])) * newer_share;
            change[k] = newer[k] - (double(v2[k]) - double(v3[k])) * older_share;
            predicted[k] = real(last_velocity[k] + (newer[k] + change[k]));
        }
        const double square = dot3(newer, newer);
        const mask smooth = (dot3(change, change) < SMOOTH * SMOOTH * square)
            & (square < SMALL_CHANGE * SMALL_CHANGE * dot3(last_velocity, last_velocity));
        if (part == 1) rotate3(w.inertia_inverse() + 9 * b, predicted, predicted);
        for (int k = 0; k < 3; ++k) out[k] = choose(smooth, predicted[k], out[k]);
    }
}
// Contacts use only the difference between the midpoint rates and the kicked velocities. Keep the difference.
GPUSIM_PHASE void forget_prediction(const World& w, int i) {
    const real kicked = w.twist_kicked()[i];
    const int body = i / 6, k = i % 6 - 3;
    if (k >= 0) w.midpoint()[3 * body + k] = w.midpoint()[3 * body + k] + (kicked - w.twist()[i]);
    w.twist()[i] = kicked;
}
