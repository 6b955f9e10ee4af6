// Writes of poses and velocities. gpusim/reference/signals/writes.py describes the operations.
#pragma once
#include "observe.cuh"

struct Write {
    const double* value;  // written values of the world
    double* memory; // REMEMBERED numbers of each body: previous pose (7), velocity change (6), advance (6), impacts (2)
};
GPUSIM_FN void center_offset(const StoredWorld& w, int b, double* out) {
    rotate_from_body(w, b, w.body_center() + 3 * b, out);
}
GPUSIM_FN void store3(const double* from, stored* to) {
    for (int k = 0; k < 3; ++k) to[k] = stored(from[k]);
}
// Compute L = I omega of body b, world frame.
GPUSIM_SHARED void momentum_of(const StoredWorld& w, int b, const double* omega, double* out) {
    double rotation[9];
    body_rotation(w, b, rotation);
    rotate_back3(rotation, omega, out);
    rotate3(w.inertia() + 9 * b, out, out);
    rotate3(rotation, out, out);
}
// Return component k of a body's acceleration in free fall (part 0) or of the applied torque (part 1).
GPUSIM_FN double free_fall(const StoredWorld& w, int b, int part, int k) {
    if (part) return w.applied_torque()[3 * b + k];
    return w.gravity_scale()[b] * w.gravity()[k] + w.applied_force()[3 * b + k] * double(w.inverse_mass()[b]);
}
GPUSIM_FN bool was_struck(const StoredWorld& w, int b, int part, const double* now) {
    if (!w.dynamic()[b] || w.semi_implicit()) return false;
    const stored *half = (part == 0 ? w.linear_velocity() : w.angular_momentum()) + 3 * b, *before = w.velocity_before() + 6 * b + 3 * part;
    double square = 0.0, limit = 0.0;
    for (int k = 0; k < 3; ++k) {
        if (now[k] != double(half[k])) return false;
        const double change = double(half[k]) - double(before[k]), greatest = WRITE_IMPACT * *w.kick_before() * free_fall(w, b, part, k);
        square += change * change;
        limit += greatest * greatest;
    }
    return square > limit;
}
// Replace the velocities at half steps by the velocities at t.
GPUSIM_FN void restart_velocities(const StoredWorld& w) {
    for (int b = 0; b < w.bodies(); ++b)
        for (int part = 0; part < 2; ++part) {
            double now[3];
            extrapolated(w, b, part, now);
            if (was_struck(w, b, part, now))
                for (int k = 0; k < 3; ++k) now[k] += 0.5 * *w.step_before() * free_fall(w, b, part, k);
            store3(now, (part == 0 ? w.linear_velocity() : w.angular_momentum()) + 3 * b);
        }
    *w.step_before() = 0.0;
}
// Advance the velocities of body b from the half step to t, and store the change.
GPUSIM_FN void advance_body(const StoredWorld& w, const Write& write, int b) {
    double* advance = write.memory + REMEMBERED * b + 13;
    for (int part = 0; part < 2; ++part) {
        stored* half = (part == 0 ? w.linear_velocity() : w.angular_momentum()) + 3 * b;
        double now[3];
        extrapolated(w, b, part, now);
        advance[6 + part] = was_struck(w, b, part, now);
        for (int k = 0; k < 3; ++k) advance[3 * part + k] = now[k] - double(half[k]);
        store3(now, half);
        store3(now, w.velocity_before() + 6 * b + 3 * part);
        store3(now, w.velocity_before_last() + 6 * b + 3 * part);
    }
}
// Convert the velocities of body b back to the half step. moved = 0: subtract the stored change. moved = 1: subtract
// the change in free fall, except after an impact. moved = 2: subtract the change in free fall, even after an impact.
GPUSIM_FN void step_back_body(const StoredWorld& w, const Write& write, int b, int moved) {
    const double h = *w.step_before(), half = 0.5 * h, kick = *w.kick_before(), older = *w.kick_before_last();
    const double* advance = write.memory + REMEMBERED * b + 13;
    for (int part = 0; part < 2; ++part) {
        stored* velocity = (part == 0 ? w.linear_velocity() : w.angular_momentum()) + 3 * b;
        const bool unchanged = (moved == 1 && advance[6 + part] != 0.0) || older < 0.0 || w.semi_implicit();
        for (int k = 0; k < 3; ++k) {
            const double velocity_change = unchanged ? 0.0 : moved ? half * free_fall(w, b, part, k) : advance[3 * part + k];
            const double pull = h > 0.0 ? velocity_change / half : 0.0;
            const double now = double(velocity[k]) - velocity_change, before = now - kick * pull;
            velocity[k] = stored(now);
            w.velocity_before()[6 * b + 3 * part + k] = stored(before);
            w.velocity_before_last()[6 * b + 3 * part + k] = stored(before - max_(older, 0.0) * pull);
        }
    }
}
// Add sign * (rate of the coordinate at t) to the stored rates of axis k. sign: -1 before the write, 1 after the write.
GPUSIM_FN void add_axis_rate(const StoredWorld& w, int k, int sign) {
    const double rate = sign * axis_rate(w, k);
    w.axis_velocity()[k] = stored(double(w.axis_velocity()[k]) + rate);
    w.axis_velocity_before()[k] = stored(double(w.axis_velocity_before()[k]) + rate);
}
GPUSIM_FN void forget_contacts(const StoredWorld& w, int b) {
    for (int m = 0; m < *w.pair_count(); ++m)
        for (int side = 0; side < 2; ++side)
            if (w.shape_body()[w.pair_shapes()[2 * m + side]] == b)
                for (int k = 0; k < 4; ++k) w.contact_age()[4 * m + k] = 0;
}
GPUSIM_FN void write_orientation(const StoredWorld& w, int b, const double* q) {
    double origin[3], omega[3], momentum[3], offset[3];
    body_origin(w, b, origin);
    angular_velocity(w, b, omega);
    for (int k = 0; k < 4; ++k) w.orientation()[4 * b + k] = q[k];
    normalize4(w.orientation() + 4 * b);
    center_offset(w, b, offset);
    for (int k = 0; k < 3; ++k) w.position()[3 * b + k] = origin[k] + offset[k];
    momentum_of(w, b, omega, momentum);
    store3(momentum, w.angular_momentum() + 3 * b);
}
// Write a new pose of body b, and rotate its velocities with the body.
GPUSIM_SHARED void move_body(const StoredWorld& w, const Write& write, int b, double* q, const double* center) {
    const double* old = write.memory + REMEMBERED * b + 3;
    double rotation[4], matrix[9], vector[3];
    if (q[0] * old[0] + q[1] * old[1] + q[2] * old[2] + q[3] * old[3] < 0.0)
        for (int k = 0; k < 4; ++k) q[k] = -q[k];
    conjugate4(old, rotation);
    quaternion_product(q, rotation, rotation);
    normalize4(rotation);
    matrix_from_quaternion(rotation, matrix);
    for (int k = 0; k < 4; ++k) w.orientation()[4 * b + k] = q[k];
    copy3(center, w.position() + 3 * b);
    copy3(w.linear_velocity() + 3 * b, vector);
    rotate3(matrix, vector, vector);
    store3(vector, w.linear_velocity() + 3 * b);
    copy3(w.angular_momentum() + 3 * b, vector);
    rotate3(matrix, vector, vector);
    store3(vector, w.angular_momentum() + 3 * b);
}
// Write the pose of a joint's child: its rotation and shift relative to the parent's joint frame.
GPUSIM_SHARED void move_child(const StoredWorld& w, const Write& write, int c, const double* relative_rotation, const double* shift) {
    const int a = w.coordinate_body_a()[c], b = w.coordinate_body_b()[c];
    double q[4], arm[3], center[3], rotation[9];
    quaternion_product(w.orientation() + 4 * a, relative_rotation, q);
    normalize4(q);
    for (int k = 0; k < 3; ++k) arm[k] = w.coordinate_arm_a()[3 * c + k] + shift[k];
    rotate_from_body(w, a, arm, center);
    matrix_from_quaternion(q, rotation);
    rotate3(rotation, w.coordinate_arm_b() + 3 * c, arm);
    for (int k = 0; k < 3; ++k) center[k] += w.position()[3 * a + k] - arm[k];
    move_body(w, write, b, q, center);
}
GPUSIM_FN void middle_axis(const StoredWorld& w, int c, double* out) {
    double frame_rotation[4], matrix[9], other[3];
    conjugate4(w.coordinate_frame_a() + 4 * c, frame_rotation);
    quaternion_product(w.coordinate_frame_b() + 4 * c, frame_rotation, frame_rotation);
    matrix_from_quaternion(frame_rotation, matrix);
    rotate3(matrix, w.coordinate_other() + 3 * c, other);
    cross3(w.coordinate_axis() + 3 * c, other, out);
}
GPUSIM_FN void set_joint_coordinates(const StoredWorld& w, const Write& write, int c, int count, const double* value) {
    double relative_rotation[4] = {0.0, 0.0, 0.0, 1.0}, after[4] = {0.0, 0.0, 0.0, 1.0}, shift[3] = {0.0, 0.0, 0.0}, q[4], vector[3];
    for (int n = 0; n < count; ++n) {
        const int kind = w.coordinate_kind()[c + n];
        copy3(w.coordinate_axis() + 3 * (c + n), vector);
        if (kind == MIDDLE_ANGLE) middle_axis(w, c + n, vector);
        for (int k = 0; k < 3; ++k) vector[k] = value[n] * vector[k];
        if (kind == TRANSLATION)
            for (int k = 0; k < 3; ++k) shift[k] += vector[k];
        if (kind != ANGLE && kind != OUTER_ANGLE && kind != MIDDLE_ANGLE) continue;
        quaternion_from_rotation_vector(vector, q);
        if (w.coordinate_owner()[c + n] == w.coordinate_body_b()[c]) quaternion_product(after, q, after);
        else quaternion_product(relative_rotation, q, relative_rotation);
    }
    quaternion_product(relative_rotation, w.coordinate_frame_a() + 4 * c, relative_rotation);
    conjugate4(w.coordinate_frame_b() + 4 * c, q);
    quaternion_product(relative_rotation, q, relative_rotation);
    quaternion_product(relative_rotation, after, relative_rotation);
    move_child(w, write, c, relative_rotation, shift);
}
GPUSIM_FN void set_joint_frame(const StoredWorld& w, const Write& write, int c, const double* position, const double* quaternion) {
    double shift[3] = {0.0, 0.0, 0.0}, frame[9], relative_rotation[4], q[4];
    for (int k = 0; k < 4; ++k) q[k] = quaternion[k];
    normalize4(q);
    quaternion_product(w.coordinate_frame_a() + 4 * c, q, relative_rotation);
    conjugate4(w.coordinate_frame_b() + 4 * c, q);
    quaternion_product(relative_rotation, q, relative_rotation);
    if (position) {
        matrix_from_quaternion(w.coordinate_frame_a() + 4 * c, frame);
        rotate3(frame, position, shift);
    }
    move_child(w, write, c, relative_rotation, shift);
}
// Move body b rigidly with body a.
GPUSIM_FN void carry_body(const StoredWorld& w, const Write& write, int b, int a) {
    const double *old = write.memory + REMEMBERED * b, *other = write.memory + REMEMBERED * a;
    double spin[4], q[4], matrix[9], arm[3], center[3];
    conjugate4(other + 3, spin);
    quaternion_product(w.orientation() + 4 * a, spin, spin);
    normalize4(spin);
    matrix_from_quaternion(spin, matrix);
    subtract3(old, other, arm);
    rotate3(matrix, arm, center);
    for (int k = 0; k < 3; ++k) center[k] += w.position()[3 * a + k];
    quaternion_product(spin, old + 3, q);
    normalize4(q);
    move_body(w, write, b, q, center);
}
GPUSIM_FN void carry_rate(const StoredWorld& w, const Write& write, int b, int a) {
    double *mine = write.memory + REMEMBERED * b + 7, *theirs = write.memory + REMEMBERED * a + 7, arm[3], side[3];
    subtract3(w.position() + 3 * b, w.position() + 3 * a, arm);
    cross3(theirs + 3, arm, side);
    for (int k = 0; k < 3; ++k) {
        mine[k] = theirs[k] + side[k];
        mine[3 + k] = theirs[3 + k];
    }
}
GPUSIM_FN void write_rates(const StoredWorld& w, const Write& write, int c, int count, const double* value) {
    const int b = w.coordinate_body_b()[c];
    double *change = write.memory + REMEMBERED * b + 7, angular[3] = {0.0, 0.0, 0.0}, along[3], arm[3], side[3];
    carry_rate(w, write, b, w.coordinate_body_a()[c]);
    for (int n = 0; n < count; ++n) {
        const double difference = value[n] - coordinate_rate(w, c + n);
        rotate_from_body(w, w.coordinate_owner()[c + n], w.coordinate_axis() + 3 * (c + n), along);
        if (w.coordinate_kind()[c + n] == MIDDLE_ANGLE) rotation_direction(w, c + n, along);
        double* to = w.coordinate_kind()[c + n] == TRANSLATION ? change : angular;
        for (int k = 0; k < 3; ++k) to[k] += difference * along[k];
    }
    rotate_from_body(w, b, w.coordinate_arm_b() + 3 * c, arm);
    cross3(angular, arm, side);
    for (int k = 0; k < 3; ++k) {
        change[k] -= side[k];
        change[3 + k] += angular[k];
    }
}
GPUSIM_FN void apply_rates(const StoredWorld& w, const Write& write) {
    for (int b = 0; b < w.bodies() - 1; ++b) {
        const double* change = write.memory + REMEMBERED * b + 7;
        double momentum[3];
        momentum_of(w, b, change + 3, momentum);
        for (int k = 0; k < 3; ++k) {
            w.linear_velocity()[3 * b + k] = stored(w.linear_velocity()[3 * b + k] + change[k]);
            w.angular_momentum()[3 * b + k] = stored(w.angular_momentum()[3 * b + k] + momentum[k]);
        }
    }
}
GPUSIM_FN void remember_poses(const StoredWorld& w, const Write& write) {
    for (int b = 0; b < w.bodies(); ++b) {
        double* memory = write.memory + REMEMBERED * b;
        copy3(w.position() + 3 * b, memory);
        for (int k = 0; k < 4; ++k) memory[3 + k] = w.orientation()[4 * b + k];
        for (int k = 7; k < 13; ++k) memory[k] = 0.0;
    }
}
GPUSIM_PHASE void write_one(const StoredWorld& w, const Write& write, int what, int i, int j, const double* value) {
    double offset[3];
    switch (what) {
    case WRITE_RESTART: return restart_velocities(w);
    case WRITE_BODY_POSITION:
        center_offset(w, i, offset);
        for (int k = 0; k < 3; ++k) w.position()[3 * i + k] = value[k] + offset[k];
        return;
    case WRITE_BODY_ORIENTATION: return write_orientation(w, i, value);
    case WRITE_BODY_LINEAR: return store3(value, w.linear_velocity() + 3 * i);
    case WRITE_BODY_ANGULAR:
        momentum_of(w, i, value, offset);
        return store3(offset, w.angular_momentum() + 3 * i);
    case WRITE_REMEMBER: return remember_poses(w, write);
    case WRITE_JOINT: return set_joint_coordinates(w, write, i, j, value);
    case WRITE_JOINT_ROTATION: return set_joint_frame(w, write, i, nullptr, value);
    case WRITE_JOINT_POSE: return set_joint_frame(w, write, i, value, value + 3);
    case WRITE_CARRY: return carry_body(w, write, i, j);
    case WRITE_RATE: return write_rates(w, write, i, j, value);
    case WRITE_CARRY_RATE: return carry_rate(w, write, i, j);
    case WRITE_APPLY_RATES: return apply_rates(w, write);
    case WRITE_WRAP_ANGLE: w.angle()[i] = wrapped_now(w, i); return;
    case WRITE_SET_ANGLE: w.angle()[i] = *value; return;
    case WRITE_ADVANCE: return advance_body(w, write, i);
    case WRITE_STEP_BACK: return step_back_body(w, write, i, j);
    case WRITE_AXIS_RATE: return add_axis_rate(w, i, j);
    case WRITE_FORGET_CONTACTS: return forget_contacts(w, i);
    case WRITE_POSED: *w.posed() = 1; return;
    }
}

// Execute the operations (code, i, j, column) in all worlds. rows[n] is the row of world n in the values. A negative
// row skips the world.
GPUSIM_KERNEL void write_worlds(const Arguments* a, const int* operations, const int* rows, const double* values,
                                double* memory, int count, int width) {
#if GPUSIM_GPU
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
#else
    const int first = 0, stride = 1;
#endif
    for (int id = first; id < a->n_worlds; id += stride) {
        if (rows[id] < 0) continue;
        const StoredWorld w(a, id);
        const double* value = values + (long long)rows[id] * width;
        const Write write = {value, memory + (long long)id * w.bodies() * REMEMBERED};
        for (int n = 0; n < count; ++n) {
            const int* one = operations + 4 * n;
            write_one(w, write, one[0], one[1], one[2], value + one[3]);
        }
    }
}
