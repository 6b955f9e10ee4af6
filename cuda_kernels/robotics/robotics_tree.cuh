// Kinematic tree in a posture: poses of bodies, axes of velocities, and rows of tasks and loops. Each thread computes a
// world. NumPy: gpusim/robotics/kinematics.py, elements.py and tasks.py.
#pragma once
#include "../math/rotations.cuh"
#include "robot.cuh"

#define MOTION_SLIDE 0
#define MOTION_ROTATE 1
#define MOTION_BALL 2
#define GOAL_POSE 0
#define GOAL_POINT 1
#define GOAL_COM 2
#define ELEMENT_GAP 0
#define ELEMENT_WORLD_GAP 1
#define ELEMENT_ANGLE 2
#define ELEMENT_LINE 3
#define ELEMENT_SUM 4

// Arrays of one world. The Jacobian is column-major.
struct RobotWork {
    double *posture, *rotation, *origin, *axis, *point, *mass, *moment, *jacobian, *error, *lever, *pull;
    double *damping, *compliance, *start, *step, *step_above, *fixed, *free, *low, *high, *matrix, *column, *force;
    double *last, *before, *trial_error, *linear_gain, *full_error, *added;
};
GPUSIM_FN double* next_array(double*& memory, int count) {
    double* out = memory;
    memory += count;
    return out;
}
// Set the pointers to the arrays. gpusim/robotics/native.py computes the size of this memory.
GPUSIM_FN void assign_memory(const Robot& r, double* memory, double* posture, RobotWork& w) {
    const int n = r.nodes, v = r.freedoms, m = r.rows;
    w.posture = posture;
    w.rotation = next_array(memory, 9 * n);
    w.origin = next_array(memory, 3 * n);
    w.mass = next_array(memory, n);
    w.moment = next_array(memory, 3 * n);
    w.axis = next_array(memory, 3 * v);
    w.point = next_array(memory, 3 * v);
    w.jacobian = next_array(memory, m * v);
    w.lever = next_array(memory, r.groups * v);
    w.error = next_array(memory, m);
    w.column = next_array(memory, 2 * m);
    w.pull = next_array(memory, r.levels * v);
    w.damping = next_array(memory, r.levels * v);
    w.compliance = next_array(memory, v);
    w.start = next_array(memory, v);
    w.step = next_array(memory, v);
    w.step_above = next_array(memory, v);
    w.fixed = next_array(memory, v);
    w.free = next_array(memory, v);
    w.low = next_array(memory, v);
    w.high = next_array(memory, v);
    w.last = next_array(memory, v);
    w.matrix = next_array(memory, m * m);
    w.force = next_array(memory, r.levels * m);
    if (!r.guarded) return;
    w.before = next_array(memory, r.size);
    w.trial_error = next_array(memory, m);
    w.linear_gain = next_array(memory, m);
    w.full_error = next_array(memory, m);
    w.added = next_array(memory, v);
}

// Compute a rotation matrix (Rodrigues).
GPUSIM_FN void axis_rotation(const double* u, double angle, double* out) {
    double s, c;
    det::sincos(angle, &s, &c);
    const double k = 1.0 - c;
    out[0] = u[0] * u[0] * k + c; out[1] = u[0] * u[1] * k - s * u[2]; out[2] = u[0] * u[2] * k + s * u[1];
    out[3] = u[1] * u[0] * k + s * u[2]; out[4] = u[1] * u[1] * k + c; out[5] = u[1] * u[2] * k - s * u[0];
    out[6] = u[2] * u[0] * k - s * u[1]; out[7] = u[2] * u[1] * k + s * u[0]; out[8] = u[2] * u[2] * k + c;
}
GPUSIM_FN void copy9(const double* a, double* out) {
    for (int k = 0; k < 9; ++k) out[k] = a[k];
}
GPUSIM_FN void add_rotated(const double* matrix, const double* vector, double* to) {
    double rotated[3];
    rotate3(matrix, vector, rotated);
    for (int k = 0; k < 3; ++k) to[k] += rotated[k];
}

// Apply the rotation of a ball joint, a quaternion. Its three velocities are about the axes of the joint frame.
GPUSIM_FN void apply_ball(const Robot& r, const RobotWork& w, int motion, double* frame, const double* point) {
    const double* q = w.posture + r.motion_at[motion];
    const int rate = r.motion_rate[motion];
    const double sign = r.motion_sign[motion];
    double unit[4] = {q[0], q[1], q[2], q[3]}, rotation[9], next[9];
    normalize4(unit);
    matrix_from_quaternion(unit, rotation);
    if (sign < 0.0) product33_transposed(frame, rotation, next);
    else product33(frame, rotation, next);
    const double* axes = sign < 0.0 ? next : frame;
    for (int k = 0; k < 3; ++k) {
        for (int c = 0; c < 3; ++c) w.axis[3 * (rate + k) + c] = sign * axes[3 * c + k];
        copy3(point, w.point + 3 * (rate + k));
    }
    copy9(next, frame);
}
GPUSIM_FN void move_nodes(const Robot& r, const RobotWork& w) {
    for (int i = 0; i < r.nodes; ++i) {
        const double *before = r.node_before + 12 * i, *after = r.node_after + 12 * i;
        const int parent = r.node_parent[i];
        double frame[9], point[3], rotation[9], next[9];
        if (parent < 0) {
            copy3(before, point);
            copy9(before + 3, frame);
        } else {
            copy3(w.origin + 3 * parent, point);
            add_rotated(w.rotation + 9 * parent, before, point);
            product33(w.rotation + 9 * parent, before + 3, frame);
        }
        for (int m = r.node_motion[i]; m < r.node_motion[i + 1]; ++m) {
            if (r.motion_kind[m] == MOTION_BALL) {
                apply_ball(r, w, m, frame, point);
                continue;
            }
            const double sign = r.motion_sign[m], value = sign * w.posture[r.motion_at[m]];
            const int rate = r.motion_rate[m];
            double axis[3];
            rotate3(frame, r.motion_axis + 3 * m, axis);
            if (r.motion_kind[m] == MOTION_SLIDE) {
                for (int k = 0; k < 3; ++k) point[k] += value * axis[k];
            } else {
                axis_rotation(r.motion_axis + 3 * m, value, rotation);
                product33(frame, rotation, next);
                copy9(next, frame);
            }
            for (int k = 0; k < 3; ++k) w.axis[3 * rate + k] = sign * axis[k];
            copy3(point, w.point + 3 * rate);
        }
        product33(frame, after + 3, w.rotation + 9 * i);
        copy3(point, w.origin + 3 * i);
        add_rotated(frame, after, w.origin + 3 * i);
    }
}
// Compute the masses and first moments of the subtree of each node.
GPUSIM_FN void accumulate_masses(const Robot& r, const RobotWork& w, const double* mass) {
    for (int i = 0; i < r.nodes; ++i) {
        double center[3];
        copy3(w.origin + 3 * i, center);
        add_rotated(w.rotation + 9 * i, r.node_com + 3 * i, center);
        w.mass[i] = mass[i];
        for (int k = 0; k < 3; ++k) w.moment[3 * i + k] = mass[i] * center[k];
    }
    for (int i = r.nodes - 1; i >= 0; --i) {
        const int parent = r.node_parent[i];
        if (parent < 0) continue;
        w.mass[parent] += w.mass[i];
        for (int k = 0; k < 3; ++k) w.moment[3 * parent + k] += w.moment[3 * i + k];
    }
}
GPUSIM_FN double center_of_mass(const Robot& r, const RobotWork& w, double* out) {
    double total = 0.0;
    out[0] = out[1] = out[2] = 0.0;
    for (int i = 0; i < r.nodes; ++i) {
        if (r.node_parent[i] >= 0) continue;
        total += w.mass[i];
        for (int k = 0; k < 3; ++k) out[k] += w.moment[3 * i + k];
    }
    for (int k = 0; k < 3; ++k) out[k] = out[k] / total;
    return total;
}

GPUSIM_FN void node_point(const RobotWork& w, int node, const double* point, double* out) {
    if (node < 0) return copy3(point, out);
    copy3(w.origin + 3 * node, out);
    add_rotated(w.rotation + 9 * node, point, out);
}
GPUSIM_FN void rotate_from_node(const RobotWork& w, int node, const double* vector, double* out) {
    if (node < 0) return copy3(vector, out);
    rotate3(w.rotation + 9 * node, vector, out);
}
// Compute the velocity of a point of a body due to a unit velocity j on the path of the body.
GPUSIM_FN void point_velocity(const Robot& r, const RobotWork& w, int j, const double* position, double* out) {
    if (!r.rate_rotates[j]) return copy3(w.axis + 3 * j, out);
    double arm[3];
    subtract3(position, w.point + 3 * j, arm);
    cross3(w.axis + 3 * j, arm, out);
}
GPUSIM_FN void rotation_error(const RobotWork& w, int node, const double* local, const double* target, double* out) {
    double frame[9], rows[9], difference[9], body[9];
    // Rotation from the frame to the target, as a matrix. The quaternion follows from its largest component.
    matrix_from_quaternion(local, frame);
    if (node >= 0) product33(w.rotation + 9 * node, frame, body);
    else copy9(frame, body);
    matrix_from_quaternion(target, rows);
    product33_transposed(rows, body, difference);
    const double* d = difference;
    const double four[4] = {1.0 + d[0] - d[4] - d[8], 1.0 - d[0] + d[4] - d[8], 1.0 - d[0] - d[4] + d[8], 1.0 + d[0] + d[4] + d[8]};
    int largest = 0;
    for (int k = 1; k < 4; ++k)
        if (four[k] > four[largest]) largest = k;
    const double xy = d[3] + d[1], xz = d[2] + d[6], yz = d[7] + d[5], wx = d[7] - d[5], wy = d[2] - d[6], wz = d[3] - d[1];
    double q[4];
    q[0] = largest == 0 ? four[0] : (largest == 1 ? xy : (largest == 2 ? xz : wx));
    q[1] = largest == 0 ? xy : (largest == 1 ? four[1] : (largest == 2 ? yz : wy));
    q[2] = largest == 0 ? xz : (largest == 1 ? yz : (largest == 2 ? four[2] : wz));
    q[3] = largest == 0 ? wx : (largest == 1 ? wy : (largest == 2 ? wz : four[3]));
    normalize4(q);
    rotation_vector_from_quaternion(q, out);
}

// Compute the errors of a task (target minus value): three numbers, or six for a pose.
GPUSIM_FN void goal_errors(const Robot& r, const RobotWork& w, int goal, const double* target, double* position,
                           double* out) {
    const int kind = r.goal_kind[goal], node = r.goal_node[goal];
    if (kind == GOAL_COM) center_of_mass(r, w, position);
    else node_point(w, node, r.goal_point + 3 * goal, position);
    subtract3(target, position, out);
    if (kind == GOAL_POSE) rotation_error(w, node, r.goal_frame + 4 * goal, target + 3, out + 3);
}
GPUSIM_FN void set_row(const Robot& r, const RobotWork& w, int goal, int component, int j, double value) {
    const int row = r.goal_row[6 * goal + component];
    if (row >= 0) w.jacobian[j * r.rows + row] = value;
}
GPUSIM_FN void goal_rows(const Robot& r, const RobotWork& w, int goal, const double* target) {
    double position[3], errors[6], moved[3];
    goal_errors(r, w, goal, target, position, errors);
    const int kind = r.goal_kind[goal], node = r.goal_node[goal];
    for (int k = 0; k < (kind == GOAL_POSE ? 6 : 3); ++k)
        if (r.goal_row[6 * goal + k] >= 0) w.error[r.goal_row[6 * goal + k]] = errors[k];
    if (kind == GOAL_COM) {
        double center[3];
        const double total = center_of_mass(r, w, center);
        for (int j = 0; j < r.freedoms; ++j) {
            const int owner = r.rate_owner[j];
            const double mass = w.mass[owner];
            double arm[3];
            for (int k = 0; k < 3; ++k) arm[k] = w.moment[3 * owner + k] - mass * w.point[3 * j + k];
            if (r.rate_rotates[j]) cross3(w.axis + 3 * j, arm, moved);
            for (int k = 0; k < 3; ++k)
                set_row(r, w, goal, k, j, (r.rate_rotates[j] ? moved[k] : mass * w.axis[3 * j + k]) / total);
        }
        return;
    }
    if (node < 0) return;
    for (int at = r.path_start[node]; at < r.path_start[node + 1]; ++at) {
        const int j = r.path[at];
        point_velocity(r, w, j, position, moved);
        for (int k = 0; k < 3; ++k) set_row(r, w, goal, k, j, moved[k]);
        if (kind != GOAL_POSE || !r.rate_rotates[j]) continue;
        for (int k = 0; k < 3; ++k) set_row(r, w, goal, 3 + k, j, w.axis[3 * j + k]);
    }
}

// Add ``along`` . velocity and ``about`` . angular velocity of a point of a node to a row.
GPUSIM_FN void add_row(const Robot& r, const RobotWork& w, int row, int node, const double* position,
                       const double* along, const double* about) {
    if (node < 0) return;
    for (int at = r.path_start[node]; at < r.path_start[node + 1]; ++at) {
        const int j = r.path[at];
        double moved[3];
        point_velocity(r, w, j, position, moved);
        double value = dot3(along, moved);
        if (r.rate_rotates[j]) value += dot3(about, w.axis + 3 * j);
        w.jacobian[j * r.rows + row] += value;
    }
}
// Return the error of a locked coordinate of a loop. If ``rows`` is true, also set the Jacobian row.
GPUSIM_SHARED double element_row(const Robot& r, const RobotWork& w, int e, bool rows) {
    const int kind = r.element_kind[e], a = r.element_a[e], b = r.element_b[e];
    if (kind == ELEMENT_SUM) {
        double value = -r.element_offset[e];
        for (int t = r.term_start[e]; t < r.term_start[e + 1]; ++t) {
            const double q = w.posture[r.term_at[t]], f = r.term_factor[t], *c = r.term_curve + 3 * t;
            value += q * (f + q * (c[0] + q * (c[1] + q * c[2])));
            if (rows)
                w.jacobian[r.term_rate[t] * r.rows + e] = f + q * (2.0 * c[0] + q * (3.0 * c[1] + q * 4.0 * c[2]));
        }
        return value;
    }
    const double none[3] = {0.0, 0.0, 0.0};
    double position_a[3], position_b[3], separation[3], u[3], v[3], back[3];
    node_point(w, a, r.element_point_a + 3 * e, position_a);
    node_point(w, b, r.element_point_b + 3 * e, position_b);
    subtract3(position_b, position_a, separation);
    rotate_from_node(w, kind == ELEMENT_WORLD_GAP ? -1 : a, r.element_u + 3 * e, u);
    double value;
    if (kind == ELEMENT_ANGLE) {
        rotate_from_node(w, b, r.element_w + 3 * e, v);
        value = dot3(u, v);
        cross3(v, u, v);
        for (int k = 0; k < 3; ++k) back[k] = -v[k];
        if (rows) add_row(r, w, e, b, position_b, none, v);
        if (rows) add_row(r, w, e, a, position_a, none, back);
        return value - r.element_offset[e];
    }
    if (kind == ELEMENT_LINE) {
        value = norm3(separation);
        for (int k = 0; k < 3; ++k) u[k] = separation[k] / (value > 0.0 ? value : 1.0);
    } else {
        value = dot3(u, separation);
    }
    cross3(u, separation, v);
    for (int k = 0; k < 3; ++k) back[k] = -u[k];
    if (rows) add_row(r, w, e, b, position_b, u, none);
    if (rows) add_row(r, w, e, a, position_a, back, kind == ELEMENT_GAP ? v : none);
    return value - r.element_offset[e];
}
