// Signals at time t, from the stored state. gpusim/reference/signals/quantities.py and the actuator kinds declare the
// quantities. The quantities call the functions of observe.cuh. gpusim/backends/codegen/observe_header.py generates
// ``StoredWorld`` and the switch over all quantities.
#pragma once
#include "../actuators/strut.cuh"
#include "../math/euler_angles.cuh"
#include "../kinematics.cuh"
#if GPUSIM_WRAPS
#include "../joints/wrapping.cuh"
#endif

// Extrapolate the linear velocity (part 0) or angular momentum (part 1) to t
// (gpusim/reference/signals/state_reader.py).
GPUSIM_SHARED void extrapolated(const StoredWorld& w, int b, int part, double* out) {
    const stored* v1 = part == 0 ? w.linear_velocity() + 3 * b : w.angular_momentum() + 3 * b;
    copy3(v1, out);
    const double h1 = *w.step_before(), kick = *w.kick_before(), kick_before = *w.kick_before_last();
    if (w.semi_implicit() || !(h1 > 0.0) || kick_before < 0.0) return;
    const stored *v2 = w.velocity_before() + 6 * b + 3 * part, *v3 = w.velocity_before_last() + 6 * b + 3 * part;
    double change[3], before[3], apart[3];
    const double scale = 0.5 * h1 / kick;
    for (int k = 0; k < 3; ++k) change[k] = scale * (double(v1[k]) - double(v2[k]));
    if (!(kick_before > 0.0)) {
        for (int k = 0; k < 3; ++k) out[k] += change[k];
        return;
    }
    const double scale_before = 0.5 * h1 / kick_before, growth_scale = 0.75 * h1 / (2.0 * kick - h1);
    for (int k = 0; k < 3; ++k) before[k] = scale_before * (double(v2[k]) - double(v3[k]));
    subtract3(change, before, apart);
    const double size = dot3(change, change), size_before = dot3(before, before), limit = CARRY_SMALL * CARRY_SMALL * dot3(out, out);
    double smooth[3];
    for (int k = 0; k < 3; ++k) smooth[k] = change[k] + growth_scale * apart[k];
    const bool alike = dot3(change, before) > 0.0 && size <= CARRY_SPRING * CARRY_SPRING * size_before;
    const bool agree = alike && dot3(smooth, change) > 0.0;
    const bool small = size <= limit;
    if (agree || (small && size_before <= limit && size_before > 0.0))
        for (int k = 0; k < 3; ++k) out[k] += smooth[k];
    else if (small)
        for (int k = 0; k < 3; ++k) out[k] += change[k];
}
GPUSIM_SHARED void angular_velocity(const StoredWorld& w, int b, double* out) {
#if !GPUSIM_GPU
    if (w.cache && w.cache->angular_velocity_of[b % CACHED_BODIES] == b) return copy3(w.cache->angular_velocity[b % CACHED_BODIES], out);
#endif
    double rotation[9], momentum[3];
    body_rotation(w, b, rotation);
    extrapolated(w, b, 1, momentum);
    rotate_back3(rotation, momentum, momentum);
    rotate3(w.inertia_inverse_body() + 9 * b, momentum, momentum);
    rotate3(rotation, momentum, out);
#if !GPUSIM_GPU
    if (!w.cache) return;
    w.cache->angular_velocity_of[b % CACHED_BODIES] = b;
    copy3(out, w.cache->angular_velocity[b % CACHED_BODIES]);
#endif
}
GPUSIM_FN void body_origin(const StoredWorld& w, int b, double* out) {
    double rotation[9];
    body_rotation(w, b, rotation);
    rotate3(rotation, w.body_center() + 3 * b, out);
    subtract3(w.position() + 3 * b, out, out);
}

struct JointPoints {
    double arm_a[3], arm_b[3], apart[3];
};
GPUSIM_FN void joint_points(const StoredWorld& w, int c, JointPoints& p) {
    const int a = w.coordinate_body_a()[c], b = w.coordinate_body_b()[c];
    rotate_from_body(w, a, w.coordinate_arm_a() + 3 * c, p.arm_a);
    rotate_from_body(w, b, w.coordinate_arm_b() + 3 * c, p.arm_b);
    for (int k = 0; k < 3; ++k)
        p.apart[k] = (w.position()[3 * b + k] + p.arm_b[k]) - (w.position()[3 * a + k] + p.arm_a[k]);
}
// Compute the quaternion from the parent's joint frame to the child's joint frame, with w >= 0.
GPUSIM_SHARED void frame_rotation(const StoredWorld& w, int c, double* out) {
    double a[4], b[4];
    quaternion_product(w.orientation() + 4 * w.coordinate_body_a()[c], w.coordinate_frame_a() + 4 * c, a);
    quaternion_product(w.orientation() + 4 * w.coordinate_body_b()[c], w.coordinate_frame_b() + 4 * c, b);
    conjugate4(a, a);
    quaternion_product(a, b, out);
    if (out[3] < 0.0)
        for (int k = 0; k < 4; ++k) out[k] = -out[k];
}
// Return joint angle k between -pi and pi.
GPUSIM_SHARED double wrapped_now(const StoredWorld& w, int k) {
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
GPUSIM_FN double angle_now(const StoredWorld& w, int k) {
    const double wrapped = wrapped_now(w, k);
    return wrapped + det::TWO_PI * det::round_even((w.angle()[k] - wrapped) / det::TWO_PI);
}
#if GPUSIM_WRAPS
struct StoredPoses {
    const StoredWorld& w;
    MEMBER void world_vector(int body, const double* vector, double* out) const { rotate_from_body(w, body, vector, out); }
    MEMBER void world_point(int body, const double* point, double* out) const {
        world_vector(body, point, out);
        for (int k = 0; k < 3; ++k) out[k] = w.position()[3 * body + k] + out[k];
    }
};
// Compute both straight parts of a wrapped path, and return its length.
GPUSIM_SHARED double wrapped_legs(const StoredWorld& w, int i, double* in, double* out, double* leg_a, double* leg_b) {
    wrap_inputs(w, StoredPoses{w}, i, in);
    wrap_around(w.wrap_cylinder()[i] == 1, w.wrap_side_body()[i] >= 0, w.wrap_radius()[i], in, out);
    subtract3(out, in, leg_a);
    subtract3(in + 3, out + 3, leg_b);
    return norm3(leg_a) + out[6] + norm3(leg_b);
}
// Return the velocity of a point of body b along a straight part of path i.
GPUSIM_FN double along_leg(const StoredWorld& w, int b, const double* leg, const double* center, const double* point) {
    const double length = norm3(leg);
    double arm[3], omega[3], side[3], moving[3];
    for (int k = 0; k < 3; ++k) arm[k] = center[k] + point[k] - w.position()[3 * b + k];
    extrapolated(w, b, 0, moving);
    angular_velocity(w, b, omega);
    cross3(omega, arm, side);
    for (int k = 0; k < 3; ++k) moving[k] = moving[k] + side[k];
    return dot3(leg, moving) / (length > 0.0 ? length : 1.0);
}
GPUSIM_SHARED double wrapped_rate(const StoredWorld& w, int i) {
    double in[WRAP_INPUTS], out[WRAP_OUTPUTS], leg_a[3], leg_b[3];
    const double* center = in + 15;
    wrapped_legs(w, i, in, out, leg_a, leg_b);
    return along_leg(w, w.wrap_body()[i], leg_a, center, out) - along_leg(w, w.wrap_body_a()[i], leg_a, center, in) +
           along_leg(w, w.wrap_body_b()[i], leg_b, center, in + 3) - along_leg(w, w.wrap_body()[i], leg_b, center, out + 3);
}
#endif
GPUSIM_SHARED double plain_value(const StoredWorld& w, int c) {
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
GPUSIM_FN void rotation_direction(const StoredWorld& w, int c, double* u) {
    const int kind = w.coordinate_kind()[c], a = w.coordinate_body_a()[c], owner = w.coordinate_owner()[c];
    rotate_from_body(w, owner, w.coordinate_axis() + 3 * c, u);
    if (kind != OUTER_ANGLE && kind != MIDDLE_ANGLE) return;
    double other[3];
    rotate_from_body(w, owner == a ? w.coordinate_body_b()[c] : a, w.coordinate_other() + 3 * c, other);
    ordered_direction(kind == MIDDLE_ANGLE, u, other);
}
GPUSIM_SHARED double plain_rate(const StoredWorld& w, int c) {
    const int kind = w.coordinate_kind()[c], a = w.coordinate_body_a()[c], b = w.coordinate_body_b()[c];
#if GPUSIM_WRAPS
    if (kind == DISTANCE && w.coordinate_part()[c] >= 0) return wrapped_rate(w, w.coordinate_part()[c]);
#endif
    double omega_a[3], omega_b[3], axis[3], slip[3];
    angular_velocity(w, a, omega_a);
    angular_velocity(w, b, omega_b);
    rotation_direction(w, c, axis);
    if (kind != TRANSLATION && kind != DISTANCE) {
        subtract3(omega_b, omega_a, slip);
        return dot3(axis, slip);
    }
    JointPoints p;
    joint_points(w, c, p);
    // The velocity relative to the parent includes the rotation of the parent's axes.
    double arm_to_b[3], of_a[3], move_a[3], move_b[3];
    for (int k = 0; k < 3; ++k) arm_to_b[k] = p.arm_a[k] + p.apart[k];
    extrapolated(w, a, 0, move_a);
    extrapolated(w, b, 0, move_b);
    cross3(omega_b, p.arm_b, slip);
    cross3(omega_a, arm_to_b, of_a);
    for (int k = 0; k < 3; ++k) slip[k] = move_b[k] + slip[k] - move_a[k] - of_a[k];
    if (kind == TRANSLATION) return dot3(axis, slip);
    const double length = norm3(p.apart);
    return dot3(p.apart, slip) / (length > 0.0 ? length : 1.0);
}
// Read sums of other coordinates term by term.
GPUSIM_FN double coordinate_value(const StoredWorld& w, int c) {
    if (w.coordinate_kind()[c] != SUM) return plain_value(w, c);
    const int part = w.coordinate_part()[c];
    double total = 0.0;
    for (int k = w.sum_start()[part]; k < w.sum_start()[part + 1]; ++k)
        total += w.sum_factor()[k] * plain_value(w, w.sum_coordinate()[k]);
    return total;
}
GPUSIM_FN double coordinate_rate(const StoredWorld& w, int c) {
    if (w.coordinate_kind()[c] != SUM) return plain_rate(w, c);
    const int part = w.coordinate_part()[c];
    double total = 0.0;
    for (int k = w.sum_start()[part]; k < w.sum_start()[part + 1]; ++k)
        total += w.sum_factor()[k] * plain_rate(w, w.sum_coordinate()[k]);
    return total;
}
GPUSIM_FN double axis_value(const StoredWorld& w, int axis) { return coordinate_value(w, w.axis_coordinate()[axis]); }
GPUSIM_FN double axis_rate(const StoredWorld& w, int axis) { return coordinate_rate(w, w.axis_coordinate()[axis]); }
// Return the mean tension of the i-th joint with a tension in the last step.
GPUSIM_FN double joint_tension(const StoredWorld& w, int i) {
    const double time = *w.sensed_time();
    return time > 0.0 ? w.sensed_pull()[i] / time : 0.0;
}
GPUSIM_FN void frame_position(const StoredWorld& w, int c, double* out) {
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
GPUSIM_FN void frame_twist(const StoredWorld& w, int c, double* out) {
    const int b = w.coordinate_body_b()[c];
    double arm[3], side[3];
    rotate_from_body(w, b, w.coordinate_arm_b() + 3 * c, arm);
    extrapolated(w, b, 0, out);
    angular_velocity(w, b, out + 3);
    cross3(out + 3, arm, side);
    for (int k = 0; k < 3; ++k) out[k] += side[k];
}
GPUSIM_FN void site_velocity(const StoredWorld& w, int i, double* out) {
    const int b = w.site_body()[i];
    double arm[3], omega[3], side[3];
    rotate_from_body(w, b, w.site_arm() + 3 * i, arm);
    angular_velocity(w, b, omega);
    extrapolated(w, b, 0, out);
    cross3(omega, arm, side);
    for (int k = 0; k < 3; ++k) out[k] += side[k];
}
GPUSIM_FN void site_rate(const StoredWorld& w, int i, double* out) {
    double axes[9], rate[3];
    site_axes(w, i, axes);
    angular_velocity(w, w.site_body()[i], rate);
    rotate_back3(axes, rate, out);
}
// Compute the change of a body's acceleration (part 0) or torque (part 1) between the last kick and t.
GPUSIM_FN void acceleration_growth(const StoredWorld& w, int b, int part, const double* change, const double* rate, double* out) {
    const double h1 = *w.step_before(), kick = *w.kick_before(), kick_before_last = *w.kick_before_last();
    const stored *v2 = w.velocity_before() + 6 * b + 3 * part, *v3 = w.velocity_before_last() + 6 * b + 3 * part;
    const bool known = v2[0] != v3[0] || v2[1] != v3[1] || v2[2] != v3[2];
    for (int k = 0; k < 3; ++k) out[k] = 0.0;
    if (!(h1 > 0.0 && kick > 0.0 && kick_before_last > 0.0 && known)) return;
    const double scale = h1 / (2.0 * kick - h1);
    double half[3], side[3], gain[3];
    for (int k = 0; k < 3; ++k) {
        out[k] = scale * (change[k] - (double(v2[k]) - double(v3[k])) / kick_before_last);
        half[k] = 0.5 * h1 * rate[k];
    }
    cross3(half, out, side);
    for (int k = 0; k < 3; ++k) side[k] += out[k];
    cross3(half, side, gain);
    const double twice = 2.0 / (1.0 + dot3(half, half));
    for (int k = 0; k < 3; ++k) out[k] += gain[k] * twice;
}
// Compute the acceleration at an arm due to a torque about the center of mass.
GPUSIM_FN void tangential(const StoredWorld& w, int b, const double* rotation, const double* torque, const double* arm, double* out) {
    double angular_acceleration[3];
    rotate_back3(rotation, torque, angular_acceleration);
    rotate3(w.inertia_inverse_body() + 9 * b, angular_acceleration, angular_acceleration);
    rotate3(rotation, angular_acceleration, angular_acceleration);
    cross3(angular_acceleration, arm, out);
}
// Compute acceleration minus gravity of a site at t, in the axes of the site (gpusim/reference/signals/quantities.py).
GPUSIM_SHARED void site_acceleration(const StoredWorld& w, int i, double* out) {
    const int b = w.site_body()[i];
    const double kick = *w.kick_before();
    double change[6], rate[3], momentum[3], side[3], arm[3], rotation[9], axes[9], growth[3], tangential_part[3], carry[3];
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
    tangential(w, b, rotation, growth, arm, tangential_part);
    for (int k = 0; k < 3; ++k) carry[k] += tangential_part[k];
    double parts[9];
    for (int k = 0; k < 3; ++k) parts[k] = change[k] - w.gravity()[k];
    extrapolated(w, b, 1, momentum);
    cross3(rate, momentum, side);
    subtract3(change + 3, side, tangential_part);
    tangential(w, b, rotation, tangential_part, arm, parts + 3);
    cross3(rate, arm, side);
    cross3(rate, side, parts + 6);
    const double whole = dot3(parts, parts) + dot3(parts + 3, parts + 3) + dot3(parts + 6, parts + 6);
    const bool smooth = dot3(carry, carry) <= CARRY_ROUGH * CARRY_ROUGH * whole;
    for (int k = 0; k < 3; ++k) side[k] = parts[k] + parts[3 + k] + parts[6 + k] + (smooth ? carry[k] : 0.0);
    site_axes(w, i, axes);
    rotate_back3(axes, side, out);
}

// Compute the sensor's origin relative to the center of mass, and the sensor's z axis.
GPUSIM_FN void contact_frame(const StoredWorld& w, int i, double* arm, double* normal) {
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
GPUSIM_SHARED void contact_wrench(const StoredWorld& w, int i, double* force, double* torque) {
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
GPUSIM_FN void pressure_center(const StoredWorld& w, int i, double* out) {
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
GPUSIM_FN double spring_effort(const StoredWorld& w, int axis, double stiffness, double damping, double rest_length) {
    return -stiffness * (axis_value(w, axis) - rest_length) - damping * axis_rate(w, axis);
}

#include "quantities.cuh"

GPUSIM_FN void observe_entry(const StoredWorld& w, const int* entry, double* out) {
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
        observe_entry(StoredWorld(a, world), entries + 4 * (item - (long long)world * count), out + (long long)world * width);
    }
#else
    BodyCache cache;
    for (int world = 0; world < a->n_worlds; ++world) {
        StoredWorld w(a, world);
        w.cache = &cache;
        clear_cache(cache);
        for (int e = 0; e < count; ++e) observe_entry(w, entries + 4 * e, out + (long long)world * width);
    }
#endif
}
