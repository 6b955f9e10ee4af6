// Elements: scalar geometric functions that constraint rows restrict (gpusim/reference/joints/elements.py).
#pragma once
#include "../math/euler_angles.cuh"
#include "../math/rotations.cuh"
#include "../math/block_rows.cuh"
#include "world.cuh"
#if GPUSIM_WRAPS
#include "wrapping.cuh"
#endif

// Capacity (even) for the numbers of an element that the curvature stage reads. Dot: u, arm a, vector b, separation.
// Spin: u. Line: arms, separation, unit vector, length.
#define VECTORS 14

// Elements of one item. On a CPU, an item contains all dots of a point, because they share most of their work.
struct ElementPart {
    int first, end;
};
GPUSIM_FN int element_items(const World& w) {
    return WHOLE_BLOCKS ? w.dot_points() + w.spins() + w.lines() : w.elements();
}
GPUSIM_FN ElementPart element_part(const World& w, int item) {
    if (WHOLE_BLOCKS && item < w.dot_points()) return {w.dot_point_start()[item], w.dot_point_start()[item + 1]};
    if (WHOLE_BLOCKS) item += w.dots() - w.dot_points();
    return {item, item + 1};
}

struct Element {
    double value;
    double a[6], b[6];  // (linear, angular) of both bodies
};

struct DotVectors {
    double u[3], arm_a[3], vector_b[3], sep[3];
};
// Compute the vectors that the dots of a point have in common.
GPUSIM_FN void dot_point(const World& w, int e, DotVectors& v) {
    const int a = w.dot_body_a()[e], b = w.dot_body_b()[e];
    const double linear = w.dot_linear()[e];
    double copy[9];
    rotate3(load_matrix(w.rotation(), a, copy), w.dot_vector_a() + 3 * e, v.arm_a);
    rotate3(load_matrix(w.rotation(), b, copy), w.dot_vector_b() + 3 * e, v.vector_b);
    for (int k = 0; k < 3; ++k)
        v.sep[k] = linear * (w.position()[3 * b + k] - w.position()[3 * a + k]) + v.vector_b[k] - v.arm_a[k];
}
GPUSIM_FN void dot_axis(const World& w, int e, DotVectors& v) {
    double copy[9];
    rotate3(load_matrix(w.rotation(), w.dot_body_u()[e], copy), w.dot_u() + 3 * e, v.u);
}
GPUSIM_FN void dot_element(const World& w, int e, DotVectors& v, Element& out, real* keep) {
    dot_axis(w, e, v);
    const double linear = w.dot_linear()[e];
    // If u is fixed in the parent, the arm on the parent ends at the child's point.
    const double u_on_parent = w.dot_body_u()[e] == w.dot_body_a()[e] ? 1.0 : 0.0;
    double arm[3], side[3];
    for (int k = 0; k < 3; ++k) arm[k] = u_on_parent * v.sep[k] + v.arm_a[k];
    out.value = dot3(v.u, v.sep) - w.dot_c0()[e];
    cross3(v.u, arm, out.a + 3);
    cross3(v.u, v.vector_b, side);
    for (int k = 0; k < 3; ++k) {
        out.a[k] = -(linear * v.u[k]);
        out.b[k] = linear * v.u[k];
        out.b[3 + k] = -side[k];
    }
    if (!keep) return;
    copy3(v.u, keep);
    copy3(v.arm_a, keep + 3);
    copy3(v.vector_b, keep + 6);
    copy3(v.sep, keep + 9);
}

GPUSIM_FN void relative_rotation(const World& w, int e, const double* qa, const double* qb, double* out) {
    double a[4], b[4];
    quaternion_product(qa, w.spin_frame_a() + 4 * e, a);
    quaternion_product(qb, w.spin_frame_b() + 4 * e, b);
    conjugate4(a, a);
    quaternion_product(a, b, a);
    rotation_vector_from_quaternion(a, out);
}
// Return the value of a spin element without full rotations. Also compute its rotation vector and length.
GPUSIM_FN double spin_rotation(const World& w, int e, double* vector, double* length) {
    const double* q = w.orientation();
    relative_rotation(w, e, q + 4 * w.spin_body_a()[e], q + 4 * w.spin_body_b()[e], vector);
    *length = norm3(vector);
    const int component = w.spin_component()[e];
    return component == 3 ? *length : vector[clamped(component, 0, 2)];
}
GPUSIM_FN void spin_element(const World& w, int e, Element& out, real* keep) {
    double axis[3], u[3];
    copy3(w.spin_u() + 3 * e, axis);
    if (w.spin_angle()[e] >= 0) {
        out.value = w.angle()[w.spin_angle()[e]];
    } else {
        double vector[3], length;
        out.value = spin_rotation(w, e, vector, &length);
        // The rate of the total rotation is the angular velocity along the rotation axis. At zero rotation, any axis
        // works.
        if (w.spin_component()[e] == 3) {
            const mask is_rotated = length > 1e-9;
            double frame[9], along[3];
            matrix_from_quaternion(w.spin_frame_a() + 4 * e, frame);
            for (int k = 0; k < 3; ++k) vector[k] = vector[k] / choose(is_rotated, length, double(1.0));
            rotate3(frame, vector, along);
            for (int k = 0; k < 3; ++k) axis[k] = choose(is_rotated, along[k], axis[k]);
        }
    }
    double copy[9];
    rotate3(load_matrix(w.rotation(), w.spin_owner()[e], copy), axis, u);
    if (w.spin_component()[e] >= OUTER) {
        const int a = w.spin_body_a()[e], other = w.spin_owner()[e] == a ? w.spin_body_b()[e] : a;
        rotate3(w.rotation() + 9 * other, w.spin_other() + 3 * e, axis);
        ordered_direction(w.spin_component()[e] == MIDDLE, u, axis);
    }
    for (int k = 0; k < 3; ++k) {
        out.a[k] = out.b[k] = 0.0;
        out.a[3 + k] = -u[k];
        out.b[3 + k] = u[k];
    }
    if (keep) copy3(u, keep);
}

struct LineVectors {
    double arm_a[3], arm_b[3], sep[3];
#if GPUSIM_WRAPS
    double arc;
#endif
};
#if GPUSIM_WRAPS
// Positions and vectors of bodies at the current poses, in the world frame.
struct CurrentPoses {
    const World& w;
    template <class V> MEMBER void world_vector(int body, const V* vector, double* out) const {
        rotate3(w.rotation() + 9 * body, vector, out);
    }
    template <class V> MEMBER void world_point(int body, const V* point, double* out) const {
        world_vector(body, point, out);
        for (int k = 0; k < 3; ++k) out[k] = w.position()[3 * body + k] + out[k];
    }
};
#if !GPUSIM_WIDE
// For groups of worlds, math/simd.cuh has a version that calls the function for each lane.
template <int N, int M, class F> GPUSIM_FN void each_lane(const double* in, double* out, F call) { call(in, out); }
#endif
template <class N> struct WrapAround {
    bool cylinder, sided;
    N radius;
    template <class V> MEMBER void operator()(const V* in, V* out) const { wrap_around(cylinder, sided, radius, in, out); }
};
GPUSIM_FN void wrap_path(const World& w, int i, const double* in, double* out) {
    const bool cylinder = w.wrap_cylinder()[i] == 1, sided = w.wrap_side_body()[i] >= 0;
    const auto radius = w.wrap_radius()[i];
    each_lane<WRAP_INPUTS, WRAP_OUTPUTS>(in, out, WrapAround<decltype(radius)>{cylinder, sided, radius});
}
// Move the inner end of a line of a wrapped path to the contact point. Add the arc to the first line.
GPUSIM_FN void wrap_line(const World& w, int wrap, LineVectors& v) {
    const int i = wrap / 2, body = w.wrap_body()[i];
    const bool second = wrap % 2 != 0;
    double in[WRAP_INPUTS], out[WRAP_OUTPUTS], *inner = second ? v.arm_a : v.arm_b;
    const double *end = second ? in + 3 : in, *contact = second ? out + 3 : out;
    wrap_inputs(w, CurrentPoses{w}, i, in);
    wrap_path(w, i, in, out);
    for (int k = 0; k < 3; ++k) {
        inner[k] = contact[k] + in[15 + k] - w.position()[3 * body + k];
        v.sep[k] = second ? end[k] - contact[k] : contact[k] - end[k];
    }
    v.arc = second ? double(0.0) : out[6];
}
#endif
GPUSIM_FN void line_vectors(const World& w, int e, LineVectors& v) {
    const int a = w.line_body_a()[e], b = w.line_body_b()[e];
    rotate3(w.rotation() + 9 * a, w.line_vector_a() + 3 * e, v.arm_a);
    rotate3(w.rotation() + 9 * b, w.line_vector_b() + 3 * e, v.arm_b);
    for (int k = 0; k < 3; ++k)
        v.sep[k] = w.position()[3 * b + k] + v.arm_b[k] - w.position()[3 * a + k] - v.arm_a[k];
#if GPUSIM_WRAPS
    v.arc = 0.0;
    if (w.line_wrap()[e] >= 0) wrap_line(w, w.line_wrap()[e], v);
#endif
}
GPUSIM_FN double line_value(const World& w, int e, const LineVectors& v, double length) {
#if GPUSIM_WRAPS
    return length + v.arc - w.line_length()[e];
#else
    return (void)v, length - w.line_length()[e];
#endif
}
GPUSIM_FN void line_element(const World& w, int e, Element& out, real* keep) {
    LineVectors v;
    line_vectors(w, e, v);
    const double length = norm3(v.sep);
    // Coincident points have no line, so any direction works.
    const mask apart = length > 1e-12;
    double unit[3] = {0.0, 0.0, 1.0}, side[3];
    for (int k = 0; k < 3; ++k) unit[k] = choose(apart, v.sep[k] / choose(apart, length, double(1.0)), unit[k]);
    out.value = line_value(w, e, v, length);
    cross3(unit, v.arm_a, out.a + 3);
    cross3(unit, v.arm_b, side);
    for (int k = 0; k < 3; ++k) {
        out.a[k] = -unit[k];
        out.b[k] = unit[k];
        out.b[3 + k] = -side[k];
    }
    if (!keep) return;
    copy3(v.arm_a, keep);
    copy3(v.arm_b, keep + 3);
    copy3(v.sep, keep + 6);
    copy3(unit, keep + 9);
    keep[12] = real(length);
}

// Evaluate element e. The order of the elements is dots, spins, lines.
GPUSIM_FN void evaluate(const World& w, int e, Element& out, real* keep) {
    if (e < w.dots()) {
        DotVectors v;
        dot_point(w, e, v);
        return dot_element(w, e, v, out, keep);
    }
    e -= w.dots();
    if (e < w.spins()) return spin_element(w, e, out, keep);
    line_element(w, e - w.spins(), out, keep);
}

// Return the joint angle between -pi and pi from the rotation matrices.
GPUSIM_FN double wrapped_angle(const World& w, int k) {
    double axis[3], a[3], b[3], copy[9];
    rotate3(load_matrix(w.rotation(), w.angle_owner()[k], copy), w.angle_axis() + 3 * k, axis);
    rotate3(load_matrix(w.rotation(), w.angle_body_a()[k], copy), w.angle_ref_a() + 3 * k, a);
    rotate3(load_matrix(w.rotation(), w.angle_body_b()[k], copy), w.angle_ref_b() + 3 * k, b);
    return reference_angle(w.angle_middle()[k], axis, a, b);
}
// Return the joint angle, including full rotations. The change since the last step is below half a rotation.
GPUSIM_SHARED double counted_angle(const World& w, int k) {
    // Add only multiples of a full rotation, so that a second call at the same pose returns the same bits.
    const double wrapped = wrapped_angle(w, k);
    return wrapped + det::TWO_PI * det::round_even((w.angle()[k] - wrapped) / det::TWO_PI);
}

// Return the value of an element at the current poses, from the rotation matrices (after the drift).
GPUSIM_SHARED double element_value_now(const World& w, int e) {
    if (e < w.dots()) {
        DotVectors v;
        dot_point(w, e, v);
        dot_axis(w, e, v);
        return dot3(v.u, v.sep) - w.dot_c0()[e];
    }
    e -= w.dots();
    if (e < w.spins()) {
        double vector[3], length;
        return w.spin_angle()[e] >= 0 ? counted_angle(w, w.spin_angle()[e]) : spin_rotation(w, e, vector, &length);
    }
    e -= w.spins();
    LineVectors v;
    line_vectors(w, e, v);
    return line_value(w, e, v, norm3(v.sep));
}
