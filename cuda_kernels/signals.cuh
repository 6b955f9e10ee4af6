// Signals that are read on the device, from the slab that the stage sense left (gpusim/sensors/); the others are read
// on the host. Velocities and forces are those at t_n. The numbers READ_... and the kinds of coordinates are
// gpusim/backends/header.py's.
#pragma once
#include "kinds.cuh"
#include "sense.cuh"

struct JointPoints {
    double arm_a[3], arm_b[3], apart[3];
};
GPUSIM_FN void joint_points(const World& w, int c, JointPoints& p) {
    const int a = w.coordinate_body_a()[c], b = w.coordinate_body_b()[c];
    turn3(w.rotation() + 9 * a, w.coordinate_arm_a() + 3 * c, p.arm_a);
    turn3(w.rotation() + 9 * b, w.coordinate_arm_b() + 3 * c, p.arm_b);
    for (int k = 0; k < 3; ++k)
        p.apart[k] = (w.position()[3 * b + k] + p.arm_b[k]) - (w.position()[3 * a + k] + p.arm_a[k]);
}
GPUSIM_FN void coordinate_axis(const World& w, int c, double* axis) {
    turn3(w.rotation() + 9 * w.coordinate_owner()[c], w.coordinate_axis() + 3 * c, axis);
}
GPUSIM_FN double coordinate_value(const World& w, int c) {
    const int kind = w.coordinate_kind()[c];
    if (kind == ANGLE) return w.angle()[w.coordinate_angle()[c]];
    JointPoints p;
    double axis[3];
    joint_points(w, c, p);
    coordinate_axis(w, c, axis);
    return kind == TRANSLATION ? dot3(axis, p.apart) : norm3(p.apart);
}
GPUSIM_FN double coordinate_rate(const World& w, int c) {
    const int kind = w.coordinate_kind()[c];
    double a[6], b[6], axis[3], slip[3], of_a[3];
    for (int k = 0; k < 6; ++k) {
        a[k] = w.twist_now()[6 * w.coordinate_body_a()[c] + k];
        b[k] = w.twist_now()[6 * w.coordinate_body_b()[c] + k];
    }
    coordinate_axis(w, c, axis);
    if (kind == ANGLE) {
        subtract3(b + 3, a + 3, slip);
        return dot3(axis, slip);
    }
    JointPoints p;
    joint_points(w, c, p);
    // Seen from the parent, whose axes turn.
    double reach[3];
    for (int k = 0; k < 3; ++k) reach[k] = p.arm_a[k] + p.apart[k];
    cross3(b + 3, p.arm_b, slip);
    cross3(a + 3, reach, of_a);
    for (int k = 0; k < 3; ++k) slip[k] = b[k] + slip[k] - a[k] - of_a[k];
    if (kind == TRANSLATION) return dot3(axis, slip);
    const double length = norm3(p.apart);
    return dot3(p.apart, slip) / (length > 0.0 ? length : 1.0);
}

GPUSIM_FN void read_signal(const World& w, int what, int i, double* out) {
    if (what == READ_TIME) *out = *w.time();
    if (what == READ_RESIDUAL) *out = *w.residual();
    if (what == READ_CENTER) copy3(w.position() + 3 * i, out);
    if (what == READ_POSITION) {
        turn3(w.rotation() + 9 * i, w.body_center() + 3 * i, out);
        subtract3(w.position() + 3 * i, out, out);
    }
    if (what == READ_ORIENTATION)
        for (int k = 0; k < 4; ++k) out[k] = w.orientation()[4 * i + k];
    if (what == READ_LINEAR) copy3(w.twist_now() + 6 * i, out);
    if (what == READ_ANGULAR) copy3(w.twist_now() + 6 * i + 3, out);
    if (what == READ_MOMENTUM) copy3(w.momentum_now() + 3 * i, out);
    if (what == READ_COORDINATE) *out = coordinate_value(w, i);
    if (what == READ_RATE) *out = coordinate_rate(w, i);
    if (what >= READ_ACTUATOR) *out = read_actuator(w, what - READ_ACTUATOR, i);
}
