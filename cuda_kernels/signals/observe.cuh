// Signals at time t, from the stored state. gpusim/reference/signals/quantities.py and the actuator kinds declare the
// quantities. The quantities call the functions of observe.cuh. gpusim/backends/codegen/observe_header.py generates
// ``Kept`` and the switch over all quantities.
#pragma once
#include "../actuators/strut.cuh"
#include "../math/euler_angles.cuh"
#include "../kinematics.cuh"
#if GPUSIM_WRAPS
#include "../joints/wrapping.cuh"
#endif

// Extrapolate the linear velocity (part 0) or angular momentum (part 1) to t
// (gpusim/reference/signals/state_reader.py).
GPUSIM_SHARED void carried(const Kept& w, int b, int part, double* out) {
    const stored* v1 = part == 0 ? w.linear_velocity() + 3 * b : w.angular_momentum() + 3 * b;
    copy3(v1, out);
    const double h1 = *w.step_before(), kick = *w.kick_before(), kick_before = *w.kick_before_last();
    if (w.semi_implicit() || !(h1 > 0.0) || kick_before < 0.0) return;
    const stored *v2 = w.velocity_before() + 6 * b + 3 * part, *v3 = w.velocity_before_last() + 6 * b + 3 * part;
    double change[3], before[3], apart[3];
    const double share = 0.5 * h1 / kick;
    for (int k = 0; k < 3; ++k) change[k] = share * (double(v1[k]) - double(v2[k]));
    if (!(kick_before > 0.0)) {
        for (int k = 0; k < 3; ++k) out[k] += change[k];
        return;
    }
    const double share_before = 0.5 * h1 / kick_before, further = 0.75 * h1 / (2.0 * kick - h1);
    for (int k = 0; k < 3; ++k) before[k] = share_before * (double(v2[k]) - double(v3[k]));
    subtract3(change, before, apart);
    const double ours = dot3(change, change), theirs = dot3(before, before), limit = CARRY_SMALL * CARRY_SMALL * dot3(out, out);
    double smooth[3];
    for (int k = 0; k < 3; ++k) smooth[k] = change[k] + further * apart[k];
    const bool alike = dot3(change, before) > 0.0 && ours <= CARRY_SPRING * CARRY_SPRING * theirs;
    const bool agree = alike && dot3(smooth, change) > 0.0;
    const bool small = ours <= limit;
    if (agree || (small && theirs <= limit && theirs > 0.0))
        for (int k = 0; k < 3; ++k) out[k] += smooth[k];
    else if (small)
        for (int k = 0; k < 3; ++k) out[k] += change[k];
}
GPUSIM_SHARED void angular_velocity(const Kept& w, int b, double* out) {
#if !GPUSIM_GPU
    if (w.found && w.found->turning_of[b % FOUND_BODIES] == b) return copy3(w.found->turning[b % FOUND_BODIES], out);
#endif
    double rotation[9], momentum[3];
    body_rotation(w, b, rotation);
    carried(w, b, 1, momentum);
    rotate_back3(rotation, momentum, momentum);
    rotate3(w.inertia_inverse_body() + 9 * b, momentum, momentum);
    rotate3(rotation, momentum, out);
#if !GPUSIM_GPU
    if (!w.found) return;
    w.found->turning_of[b % FOUND_BODIES] = b;
    copy3(out, w.found->turning[b % FOUND_BODIES]);
#endif
}
GPUSIM_FN void body_origin(const Kept& w, int b, double* out) {
    double rotation[9];
    body_rotation(w, b, rotation);
    rotate3(rotation, w.body_center() + 3 * b, out);
    subtract3(w.position() + 3 * b, out, out);
}

struct JointPoints {
    double arm_a[3], arm_b[3], apart[3];
};
GPUSIM_FN void joint_points(const Kept& w, int c, JointPoints& p) {
    const int a = w.coordinate_body_a()[c], b = w.coordinate_body_b()[c];
    rotate_from_body(w, a, w.coordinate_arm_a() + 3 * c, p.arm_a);
    rotate_from_body(w, b, w.coordinate_arm_b() + 3 * c, p.arm_b);
    for (int k = 0; k < 3; ++k)
        p.apart[k] = (w.position()[3 * b + k] + p.arm_b[k]) - (w.position()[3 * a + k] + p.arm_a[k]);
}
// Compute the quaternion from the parent's joint frame to the child's joint frame, with w >= 0.
GPUSIM_SHARED void frame_rotation(const Kept& w, int c, double* out) {
    double a[4], b[4];
    quaternion_product(w.orientation() + 4 * w.coordinate_body_a()[c], w.coordinate_frame_a() + 4 * c, a);
    quaternion_product(w.orientation() + 4 * w.coordinate_body_b()[c], w.coordinate_frame_b() + 4 * c, b);
    conjugate4(a, a);
    quaternion_product(a, b, out);
    if (out[3] < 0.0)
        for (int k = 0; k < 4; ++k) out[k] = -out[k];
}
// Return joint angle k between -pi and pi.
GPUSIM_SHARED double wrapped_now(const Kept& w, int k) {
    double rotation_a[9], rotation_b[9], axis[3], a[3], b[3];
    const int body_a = w.angle_body_a()[k], body_b = w.angle_body_b()[k];
    body_rotation(w, body_a, rotation_a);
    body_rotation(w, body_b, rotation_b);
    rotate3(w.angle_owner()[k] == body_a ? rotation_a : rotation_b, w.angle_axis() + 3 * k, axis);
    rotate3(rotation_a, w.angle_ref_a() + 3 * k, a);
    rotate3(rotation_b, w.angle_ref_b() + 3 * k, b);
    return reference_angle(w.angle_middle()[k], axis, a, b);
}
// Return joint angle k, including full rotations. The rotation since the last substep is below half a rotation.
GPUSIM_FN double angle_now(const Kept& w, int k) {
    const double wrapped = wrapped_now(w, k);
    return wrapped + det::TWO_PI * det::round_even((w.angle()[k] - wrapped) / det::TWO_PI);
}
#if GPUSIM_WRAPS
struct KeptPoses {
    const Kept& w;
    MEMBER void turn(int body, const double* vector, double* out) const { rotate_from_body(w, body, vector, out); }
    MEMBER void place(int body, const double* point, double* out) const {
        turn(body, point, out);
        for (int k = 0; k < 3; ++k) out[k] = w.position()[3 * body + k] + out[k];
    }
};
// Compute both straight parts of a wrapped path, and return its length.
GPUSIM_SHARED double wrapped_legs(const Kept& w, int i, double* in, double* out, double* leg_a, double* leg_b) {
    wrap_inputs(w, KeptPoses{w}, i, in);
    wrap_around(w.wrap_cylinder()[i] == 1, w.wrap_side_body()[i] >= 0, w.wrap_radius()[i], in, out);
    subtract3(out, in, leg_a);
    subtract3(in + 3, out + 3, leg_b);
    return norm3(leg_a) + out[6] + norm3(leg_b);
}
// Return the velocity of a point of body b along a straight part of path i.
GPUSIM_FN double along_leg(const Kept& w, int b, const double* leg, const double* center, const double* point) {
    const double length = norm3(leg);
    double arm[3], turning[3], side[3], moving[3];
    for (int k = 0; k < 3; ++k) arm[k] = center[k] + point[k] - w.position()[3 * b + k];
    carried(w, b, 0, moving);
    angular_velocity(w, b, turning);
    cross3(turning, arm, side);
    for (int k = 0; k < 3; ++k) moving[k] = moving[k] + side[k];
    return dot3(leg, moving) / (length > 0.0 ? length : 1.0);
}
GPUSIM_SHARED double wrapped_rate(const Kept& w, int i) {
    double in[WRAP_INPUTS], out[WRAP_OUTPUTS], leg_a[3], leg_b[3];
    const double* center = in + 15;
    wrapped_legs(w, i, in, out, leg_a, leg_b);
    return along_leg(w, w.wrap_body()[i], leg_a, center, out) - along_leg(w, w.wrap_body_a()[i], leg_a, center, in) +
           along_leg(w, w.wrap_body_b()[i], leg_b, center, in + 3) - along_leg(w, w.wrap_body()[i], leg_b, center, out + 3);
}
#endif
GPUSIM_SHARED double plain_value(const Kept& w, int c) {
    const int kind = w.coordinate_kind()[c], part = w.coordinate_part()[c];
#if GPUSIM_WRAPS
    if (kind == DISTANCE && part >= 0) {
        double in[WRAP_INPUTS], out[WRAP_OUTPUTS], leg_a[3], leg_b[3];
        return wrapped_legs(w, part, in, out, leg_a, leg_b);
    }
#endif
    if (kind == ANGLE || kind == OUTER_ANGLE || kind == MIDDLE_ANGLE) return angle_now(w, part);
    if (kind == ROTATION || kind == TOTAL_ROTATION) {
        double q[4], vector[3];
        frame_rotation(w, c, q);
        rotation_vector_from_quaternion(q, vector);
        return kind == ROTATION ? vector[part] : norm3(vector);
    }
    JointPoints p;
    joint_points(w, c, p);
    if (kind == DISTANCE) return norm3(p.apart);
    double axis[3];
    rotate_from_body(w, w.coordinate_owner()[c], w.coordinate_axis() + 3 * c, axis);
    return dot3(axis, p.apart);
}
// Compute the direction d of coordinate c. The rate is d . (relative angular velocity). For most kinds, d is the axis.
GPUSIM_FN void rotation_direction(const Kept& w, int c, double* u) {
    const int kind = w.coordinate_kind()[c], a = w.coordinate_body_a()[c], owner = w.coordinate_owner()[c];
    rotate_from_body(w, owner, w.coordinate_axis() + 3 * c, u);
    if (kind != OUTER_ANGLE && kind != MIDDLE_ANGLE) return;
    double other[3];
    rotate_from_body(w, owner == a ? w.coordinate_body_b()[c] : a, w.coordinate_other() + 3 * c, other);
    ordered_direction(kind == MIDDLE_ANGLE, u, other);
}
GPUSIM_SHARED double plain_rate(const Kept& w, int c) {
    const int kind = w.coordinate_kind()[c], a = w.coordinate_body_a()[c], b = w.coordinate_body_b()[c];
#if GPUSIM_WRAPS
    if (kind == DISTANCE && w.coordinate_part()[c] >= 0) return wrapped_rate(w, w.coordinate_part()[c]);
#endif
    double terms_a[3], terms_b[3], axis[3], slip[3];
    angular_velocity(w, a, terms_a);
    angular_velocity(w, b, terms_b);
    rotation_direction(w, c, axis);
    if (kind != TRANSLATION && kind != DISTANCE) {
        subtract3(terms_b, terms_a, slip);
        return dot3(axis, slip);
    }
    JointPoints p;
    joint_points(w, c, p);
    // The velocity relative to the parent includes the rotation of the parent's axes.
    double reach[3], of_a[3], move_a[3], move_b[3];
    for (int k = 0; k < 3; ++k) reach[k] = p.arm_a[k] + p.apart[k];
    carried(w, a, 0, move_a);
    carried(w, b, 0, move_b);
    cross3(terms_b, p.arm_b, slip);
    cross3(terms_a, reach, of_a);
    for (int k = 0; k < 3; ++k) slip[k] = move_b[k] + slip[k] - move_a[k] - of_a[k];
    if (kind == TRANSLATION) return dot3(axis, slip);
    const double length = norm3(p.apart);
    return dot3(p.apart, slip) / (length > 0.0 ? length : 1.0);
}
// Read sums of other coordinates term by term.
GPUSIM_FN double coordinate_value(const Kept& w, int c) {
    if (w.coordinate_kind()[c] != SUM) return plain_value(w, c);
    const int part = w.coordinate_part()[c];
    double total = 0.0;
    for (int k = w.sum_start()[part]; k < w.sum_start()[part + 1]; ++k)
        total += w.sum_factor()[k] * plain_value(w, w.sum_coordinate()[k]);
    return total;
}
GPUSIM_FN double coordinate_rate(const Kept& w, int c) {
    if (w.coordinate_kind()[c] != SUM) return plain_rate(w, c);
    const int part = w.coordinate_part()[c];
    double total = 0.0;
    for (int k = w.sum_start()[part]; k < w.sum_start()[part + 1]; ++k)
        total += w.sum_factor()[k] * plain_rate(w, w.sum_coordinate()[k]);
    return total;
}
GPUSIM_FN double axis_value(const Kept& w, int axis) { return coordinate_value(w, w.axis_coordinate()[axis]); }
GPUSIM_FN double axis_rate(const Kept& w, int axis) { return coordinate_rate(w, w.axis_coordinate()[axis]); }
// Return the mean tension of the i-th joint with a tension in the last step.
GPUSIM_FN double joint_tension(const Kept& w, int i) {
    const double time = *w.sensed_time();
    return time > 0.0 ? w.sensed_pull()[i] / time : 0.0;
}
GPUSIM_FN void frame_position(const Kept& w, int c, double* out) {
    JointPoints p;
    double frame[9];
    joint_points(w, c, p);
    matrix_from_quaternion(w.coordinate_frame_a() + 4 * c, frame);
    double rotation[9];
    body_rotation(w, w.coordinate_body_a()[c], rotation);
    rotate_back3(rotation, p.apart, out);
    rotate_back3(frame, out, out);
    frame_rotation(w, c, out + 3);
}
GPUSIM_FN void frame_twist(const Kept& w, int c, double* out) {
    const int b = w.coordinate_body_b()[c];
    double arm[3], side[3];
    rotate_from_body(w, b, w.coordinate_arm_b() + 3 * c, arm);
    carried(w, b, 0, out);
    angular_velocity(w, b, out + 3);
    cross3(out + 3, arm, side);
    for (int k = 0; k < 3; ++k) out[k] += side[k];
}
GPUSIM_FN void site_velocity(const Kept& w, int i, double* out) {
    const int b = w.site_body()[i];
    double arm[3], turning[3], side[3];
    rotate_from_body(w, b, w.site_arm() + 3 * i, arm);
    angular_velocity(w, b, turning);
    carried(w, b, 0, out);
    cross3(turning, arm, side);
    for (int k = 0; k < 3; ++k) out[k] += side[k];
}
GPUSIM_FN void site_rate(const Kept& w, int i, double* out) {
    double axes[9], rate[3];
    site_axes(w, i, axes);
    angular_velocity(w, w.site_body()[i], rate);
    rotate_back3(axes, rate, out);
}
// Compute the change of a body's acceleration (part 0) or torque (part 1) between the last kick and t.
GPUSIM_FN void acceleration_growth(const Kept& w, int b, int part, const double* change, const double* rate, double* out) {
    const double h1 = *w.step_before(), kick = *w.kick_before(), older = *w.kick_before_last();
    const stored *v2 = w.velocity_before() + 6 * b + 3 * part, *v3 = w.velocity_before_last() + 6 * b + 3 * part;
    const bool known = v2[0] != v3[0] || v2[1] != v3[1] || v2[2] != v3[2];
    for (int k = 0; k < 3; ++k) out[k] = 0.0;
    if (!(h1 > 0.0 && kick > 0.0 && older > 0.0 && known)) return;
    const double share = h1 / (2.0 * kick - h1);
    double half[3], side[3], gain[3];
    for (int k = 0; k < 3; ++k) {
        out[k] = share * (change[k] - (double(v2[k]) - double(v3[k])) / older);
        half[k] = 0.5 * h1 * rate[k];
    }
    cross3(half, out, side);
    for (int k = 0; k < 3; ++k) side[k] += out[k];
    cross3(half, side, gain);
    const double twice = 2.0 / (1.0 + dot3(half, half));
    for (int k = 0; k < 3; ++k) out[k] += gain[k] * twice;
}
// Compute the acceleration at an arm due to a torque about the center of mass.
GPUSIM_FN void tangential(const Kept& w, int b, const double* rotation, const double* torque, const double* arm, double* out) {
    double turning[3];
    rotate_back3(rotation, torque, turning);
    rotate3(w.inertia_inverse_body() + 9 * b, turning, turning);
    rotate3(rotation, turning, turning);
    cross3(turning, arm, out);
}
// Compute acceleration minus gravity of a site at t, in the axes of the site (gpusim/reference/signals/quantities.py).
GPUSIM_SHARED void site_acceleration(const Kept& w, int i, double* out) {
    const int b = w.site_body()[i];
    const double kick = *w.kick_before();
    double change[6], rate[3], momentum[3], side[3], arm[3], rotation[9], axes[9], growth[3], turned[3], carry[3];
    for (int k = 0; k < 3; ++k) {
        change[k] = double(w.linear_velocity()[3 * b + k]) - double(w.velocity_before()[6 * b + k]);
        change[3 + k] = double(w.angular_momentum()[3 * b + k]) - double(w.velocity_before()[6 * b + 3 + k]);
    }
    for (int k = 0; k < 6; ++k) change[k] = kick > 0.0 ? change[k] / kick : 0.0;
    angular_velocity(w, b, rate);
    body_rotation(w, b, rotation);
    rotate3(rotation, w.site_arm() + 3 * i, arm);
    acceleration_growth(w, b, 0, change, rate, carry);
    acceleration_growth(w, b, 1, change + 3, rate, growth);
    tangential(w, b, rotation, growth, arm, turned);
    for (int k = 0; k < 3; ++k) carry[k] += turned[k];
    double felt[9];
    for (int k = 0; k < 3; ++k) felt[k] = change[k] - w.gravity()[k];
    carried(w, b, 1, momentum);
    cross3(rate, momentum, side);
    subtract3(change + 3, side, turned);
    tangential(w, b, rotation, turned, arm, felt + 3);
    cross3(rate, arm, side);
    cross3(rate, side, felt + 6);
    const double whole = dot3(felt, felt) + dot3(felt + 3, felt + 3) + dot3(felt + 6, felt + 6);
    const bool smooth = dot3(carry, carry) <= CARRY_ROUGH * CARRY_ROUGH * whole;
    for (int k = 0; k < 3; ++k) side[k] = felt[k] + felt[3 + k] + felt[6 + k] + (smooth ? carry[k] : 0.0);
    site_axes(w, i, axes);
    rotate_back3(axes, side, out);
}

// Compute the sensor's origin relative to the center of mass, and the sensor's z axis.
GPUSIM_FN void contact_frame(const Kept& w, int i, double* arm, double* normal) {
    const int site = w.contact_sensor_site()[i], body = w.contact_sensor_body()[i];
    double axes[9];
    if (site >= 0) {
        rotate_from_body(w, body, w.site_arm() + 3 * site, arm);
        site_axes(w, site, axes);
    } else {
        rotate_from_body(w, body, w.body_center() + 3 * body, arm);
        for (int k = 0; k < 3; ++k) arm[k] = -arm[k];
        body_rotation(w, body, axes);
    }
    for (int k = 0; k < 3; ++k) normal[k] = axes[3 * k + 2];
}
// Compute the mean contact force and torque about the sensor's origin in the last step
// (gpusim/reference/signals/sense.py).
GPUSIM_SHARED void contact_wrench(const Kept& w, int i, double* force, double* torque) {
    const double time = *w.sensed_time();
    double total[6], arm[3], normal[3], moment[3];
    for (int k = 0; k < 6; ++k) total[k] = time > 0.0 ? w.sensed_contact()[6 * i + k] / time : 0.0;
    contact_frame(w, i, arm, normal);
    cross3(arm, total, moment);
    for (int k = 0; k < 3; ++k) {
        force[k] = total[k];
        torque[k] = total[3 + k] - moment[k];
    }
}
GPUSIM_FN void pressure_center(const Kept& w, int i, double* out) {
    double force[3], torque[3], arm[3], normal[3], shift[3];
    contact_wrench(w, i, force, torque);
    contact_frame(w, i, arm, normal);
    const double press = dot3(normal, force);
    cross3(normal, torque, shift);
    for (int k = 0; k < 3; ++k) {
        out[k] = w.position()[3 * w.contact_sensor_body()[i] + k] + arm[k];
        if (press > 0.0) out[k] += shift[k] / press;
    }
}
// Return the effort of a spring-damper at t, N or N m.
GPUSIM_FN double spring_effort(const Kept& w, int axis, double stiffness, double damping, double rest) {
    return -stiffness * (axis_value(w, axis) - rest) - damping * axis_rate(w, axis);
}

#include "quantities.cuh"

GPUSIM_FN void observe_entry(const Kept& w, const int* entry, double* out) {
    double numbers[MAX_NUMBERS];
    observe(w, entry[0], entry[1], numbers);
    for (int k = 0; k < entry[3]; ++k) out[entry[2] + k] = numbers[k];
}
// Read a list of quantities. An entry is (quantity, index of the element, column, number of columns).
GPUSIM_KERNEL void observe_worlds(const Arguments* a, const int* entries, double* out, int count, int width) {
#if GPUSIM_GPU
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x, stride = (long long)gridDim.x * blockDim.x;
    for (long long item = first; item < (long long)a->n_worlds * count; item += stride) {
        const int world = world_of(item, count);
        observe_entry(Kept(a, world), entries + 4 * (item - (long long)world * count), out + (long long)world * width);
    }
#else
    Found found;
    for (int world = 0; world < a->n_worlds; ++world) {
        Kept w(a, world);
        w.found = &found;
        forget(found);
        for (int e = 0; e < count; ++e) observe_entry(w, entries + 4 * e, out + (long long)world * width);
    }
#endif
}
