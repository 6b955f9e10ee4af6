// Stage prepare: rotations, elements, Jacobian, M^-1 J^T and row velocities at the current poses
// (gpusim/reference/joints/prepare.py).
#pragma once
#include "elements.cuh"
#include "geometric_stiffness.cuh"
#include "rows.cuh"

// Compute rotation matrix, inverse inertia in world axes, and velocities before the kick.
GPUSIM_PHASE void rotate_body(const World& w, int b) {
    double* rotation = w.rotation() + 9 * b;
    matrix_from_quaternion(w.orientation() + 4 * b, rotation);
    real matrix3[9], product[9];
    for (int k = 0; k < 9; ++k) matrix3[k] = real(rotation[k]);
    product33(matrix3, w.inertia_inverse_body() + 9 * b, product);
    real* inverse = w.inertia_inverse() + 9 * b;
    product33_transposed(product, matrix3, inverse);
    real* twist = w.twist_before() + 6 * b;
    copy3(w.linear_velocity() + 3 * b, twist);
    copy3(w.angular_momentum() + 3 * b, twist + 3);
    rotate3(inverse, twist + 3, twist + 3);
    for (int k = 0; k < 9; ++k) w.inertia_inverse_effective()[9 * b + k] = w.dynamic()[b] ? inverse[k] : real(0);
}

GPUSIM_PHASE void track_angle(const World& w, int k) { w.angle()[k] = counted_angle(w, k); }

GPUSIM_FN void store_element(const World& w, int e, const Element& element) {
    w.element_value()[e] = element.value;
    const int row = w.element_row()[e];
    if (row < 0) return;
    real *first = w.jacobian() + jacobian_offset(w, row, 0), *second = w.jacobian() + jacobian_offset(w, row, 1);
    real copy[12], *a = PAIRED ? copy : first, *b = PAIRED ? copy + 6 : second;
    for (int k = 0; k < 6; ++k) {
        a[k] = real(element.a[k]);
        b[k] = real(element.b[k]);
    }
    if (!PAIRED) return;
    write_numbers<6>(a, first);
    write_numbers<6>(b, second);
}
GPUSIM_PHASE void evaluate_element(const World& w, int item) {
    const ElementPart part = element_part(w, item);
    real* keep = w.element_vectors() + VECTORS * part.first;
    Element element;
    if (part.first >= w.dots()) {
        evaluate(w, part.first, element, keep);
        return store_element(w, part.first, element);
    }
    DotVectors v;
    dot_point(w, part.first, v);
    real copy[12];
    for (int e = part.first; e < part.end; ++e, keep += VECTORS) {
        dot_element(w, e, v, element, PAIRED ? copy : keep);
        if (PAIRED) write_numbers<12>(copy, keep);
        store_element(w, e, element);
    }
}

// Combine the elements of coupling c. The first pose defines the offset of a gear.
GPUSIM_PHASE void sum_coupling(const World& w, int c) {
    const int row = w.coupling_row()[c], first = w.coupling_start()[c];
    double value = 0.0;
    for (int s = 0; s < w.slots(); ++s)
        for (int k = 0; k < 6; ++k) w.jacobian()[jacobian_offset(w, row, s) + k] = real(0);
    for (int term = first; term < w.coupling_start()[c + 1]; ++term) {
        const int e = w.coupling_element()[term];
        double factor = w.coupling_factor()[term];
        if (term == first && w.coupling_curved()[c]) factor += curve_slope(w, c, w.element_value()[e]);
        Element element;
        evaluate(w, e, element, nullptr);
        real *a = w.jacobian() + jacobian_offset(w, row, w.coupling_slot()[2 * term]);
        for (int k = 0; k < 6; ++k) a[k] += real(factor * double(real(element.a[k])));
        real *b = w.jacobian() + jacobian_offset(w, row, w.coupling_slot()[2 * term + 1]);
        for (int k = 0; k < 6; ++k) b[k] += real(factor * double(real(element.b[k])));
        const double term_value = w.coupling_factor()[term] * w.element_value()[e];
        value = term == first ? term_value : value + term_value;
    }
    if (w.coupling_curved()[c]) value += curve_value(w, c, w.element_value()[w.coupling_element()[first]]);
    w.coupling_offset()[c] = choose(is_nan(w.coupling_offset()[c]), value, w.coupling_offset()[c]);
    w.coupling_value()[c] = value - w.coupling_offset()[c];
}

// Item: side * block + row. Compute M^-1 J^T for a row of a side.
GPUSIM_PHASE void mass_row(const World& w, int i) {
    real row[6], matrix[9], copy[6];
    const int body = w.constraint_bodies()[i / w.block()];
    const real *m = load_matrix(w.inertia_inverse_effective(), body, matrix), inverse_mass = w.inverse_mass()[body];
    const real* j = load_numbers<6>(w.jacobian() + 6 * i, row);
    real *target = w.mass_jacobian() + 6 * i, *out = PAIRED ? copy : target;
    for (int k = 0; k < 3; ++k) {
        out[k] = j[k] * inverse_mass;
        out[3 + k] = j[3] * m[k] + j[4] * m[3 + k] + j[5] * m[6 + k];
    }
    if (PAIRED) write_numbers<6>(out, target);
}

// Set the Jacobian of a hub to the mass matrix M of its body, so that J M^-1 is the unit matrix.
GPUSIM_PHASE void mass_hub(const World& w, int c) {
    if (!is_hub(w, c)) return;
    const int body = w.hub_body()[c];
    const real mass = real(1) / w.inverse_mass()[body];
    real matrix[9], inertia[9];
    for (int k = 0; k < 9; ++k) matrix[k] = w.inertia_inverse_effective()[9 * body + k];
    inverse33(matrix, inertia);
    EACH_ROW(row, 6) {
        const int at = jacobian_offset(w, c * w.block() + row, 0);
        EACH_ROW(k, 6) {
            const real rotation = row >= 3 && k >= 3 ? inertia[3 * (row - 3) + k - 3] : real(0);
            w.mass_jacobian()[at + k] = real(k == row ? 1 : 0);
            w.jacobian()[at + k] = row < 3 && k == row ? mass : rotation;
        }
    }
}

// Set the mean axis rates of the last two drifts. Right after a reset, use the velocities of the bodies. The rates
// include the curvature bias. Without this bias, the force of a stiff damper would have a first-order error.
GPUSIM_PHASE void axis_rates(const World& w, int k) {
    const int element = w.axis_element()[k], mix = element - w.elements();
    w.axis_position()[k] = real(mix < 0 ? w.element_value()[element] : w.coupling_value()[mix]);
    const mask running = h_prev(w) > real(0);
    real rate = real(w.axis_velocity()[k]), old = real(w.axis_velocity_before()[k]);
    if (!all(running)) {
        rate = choose(running, rate, row_velocity(w, w.axis_row()[k], w.twist_before()));
        old = choose(running, old, rate);
    }
    w.rate()[k] = rate;
    w.rate_old()[k] = old;
}
