// Stage drift: update positions and orientations with the solved velocities (gpusim/reference/solve/drift.py).
#pragma once
#include "../contacts/contact_rows.cuh"
#include "../joints/curvature.cuh"
#include "positions.cuh"

// Store the velocities at the half step. The impulses change the angular momentum by I (omega - omega_kicked).
GPUSIM_PHASE void store_velocity(const World& w, int b) {
    real change[3];
    momentum_change(w, b, change);
    for (int k = 0; k < 3; ++k) {
        w.linear_velocity()[3 * b + k] = stored(w.twist()[6 * b + k]);
        w.angular_momentum()[3 * b + k] = stored(w.momentum_kicked()[3 * b + k] + change[k]);
    }
}
// Store the velocities of the previous half steps, because signals compute velocities at t from these velocities
// (gpusim/reference/signals/state_reader.py).
GPUSIM_FN void keep_velocity(const World& w, int b) {
    const double kick = *w.kick_before(), kick_before = *w.kick_before_last();
    for (int part = 0; part < 2; ++part) {
        const stored* v1 = part == 0 ? w.linear_velocity() + 3 * b : w.angular_momentum() + 3 * b;
        stored *v2 = w.velocity_before() + 6 * b + 3 * part, *v3 = w.velocity_before_last() + 6 * b + 3 * part;
        double newer[3], older[3];
        for (int k = 0; k < 3; ++k) {
            newer[k] = (double(v1[k]) - double(v2[k])) * kick_before;
            older[k] = (double(v2[k]) - double(v3[k])) * kick;
        }
        const double older_square = dot3(older, older);
        const mask sprung = (older_square > 0.0) & (CARRY_SPRING * CARRY_SPRING * older_square < dot3(newer, newer));
        for (int k = 0; k < 3; ++k) {
            v3[k] = choose(sprung, v1[k], v2[k]);
            v2[k] = v1[k];
        }
    }
}
#if !GPUSIM_WIDE
// Divide the step of a body that rotates freely into parts of at most FREE_ROTATION (gpusim/reference/joints/free_rotation.py).
GPUSIM_PHASE void spin_body(const World& w, int b) {
    const real *omega = w.twist() + 6 * b + 3, *inertia = w.inertia() + 9 * b;
    const double angle = w.h * double(norm3(omega));
    const bool large = angle > (w.semi_implicit() ? 0.0 : MIN_FREE_ROTATION) && angle < MAX_FREE_ROTATIONS * FREE_ROTATION;
    w.spun()[b] = w.body_free()[b] && large && !is_round(inertia);
    if (!w.spun()[b]) return;
    const int parts = int(angle / FREE_ROTATION) + 1;
    const double step = w.h / parts;
    double rotation[9], from[4], q[4];
    real rate[3], momentum[3], body_momentum[3];
    for (int k = 0; k < 9; ++k) rotation[k] = w.rotation()[9 * b + k];
    for (int k = 0; k < 4; ++k) q[k] = w.orientation()[4 * b + k];
    conjugate4(q, from);
    rotate_back3(rotation, omega, rate);
    rotate3(inertia, rate, body_momentum);
    rotate3(rotation, body_momentum, momentum);
    for (int part = 0; part < parts; ++part) {
        double rotation_vector[3], none[3] = {0.0, 0.0, 0.0};
        rotate_back3(rotation, momentum, body_momentum);
        midpoint_passes(inertia, body_momentum, real(0.5 * step), rate);
        rotate3(rotation, rate, rotation_vector);
        for (int k = 0; k < 3; ++k) rotation_vector[k] = rotation_vector[k] * step;
        move_pose(none, q, none, rotation_vector);
        matrix_from_quaternion(q, rotation);
    }
    double vector[3];
    quaternion_product(q, from, q);
    rotation_vector_from_quaternion(q, vector);
    for (int k = 0; k < 3; ++k) w.midpoint()[3 * b + k] = real(vector[k] / w.h);
}
#endif
// Advance the angles of fast joints, to count full rotations correctly.
GPUSIM_PHASE void advance_angle(const World& w, int k) {
    if (w.angle_middle()[k]) return;
    double axis[3];
    rotate3(w.rotation() + 9 * w.angle_owner()[k], w.angle_axis() + 3 * k, axis);
    const real *a = w.twist() + 6 * w.angle_body_a()[k] + 3, *b = w.twist() + 6 * w.angle_body_b()[k] + 3;
    double ahead = 0.0;
    for (int i = 0; i < 3; ++i) ahead += axis[i] * (double(b[i]) - double(a[i]));
    ahead = ahead * w.h;
    w.angle()[k] = choose(abs_(ahead) > FAST_ROTATION, w.angle()[k] + ahead, w.angle()[k]);
}
GPUSIM_PHASE void drift_body(const World& w, int b) {
    const real* twist = w.twist() + 6 * b;
    real rate[3];
    keep_velocity(w, b);
    store_velocity(w, b);
    // Bodies without rotation need no passes.
    const mask is_at_rest = (twist[3] == real(0)) & (twist[4] == real(0)) & (twist[5] == real(0));
    copy3(twist + 3, rate);
    if (!w.semi_implicit() && !all(is_at_rest)) {
        // With the direct solver, the midpoint rates of the final velocities are already computed.
        const bool known = w.direct() && w.constraints();
        real middle[3];
        if (known) copy3(w.midpoint() + 3 * b, middle);
        else midpoint_rate(w, b, w.twist(), middle);
        for (int k = 0; k < 3; ++k) rate[k] = choose(is_at_rest, rate[k], middle[k]);
    }
    if (w.free_bodies()) {
        const mask spun = w.spun()[b] != whole(0);
        for (int k = 0; k < 3; ++k) rate[k] = choose_at(spun, w.midpoint() + 3 * b + k, rate + k);
    }
    double shift[3], rotation_vector[3];
    if (w.conveyor()[b]) return;
    for (int k = 0; k < 3; ++k) {
        shift[k] = double(twist[k]) * w.h;
        rotation_vector[k] = double(rate[k]) * w.h;
    }
    move_pose(w.position() + 3 * b, w.orientation() + 4 * b, shift, rotation_vector);
}
GPUSIM_PHASE void store_row(const World& w, int row) { w.impulse()[row] = stored(w.solved()[row]); }
GPUSIM_PHASE void store_axis(const World& w, int k) {
    w.axis_mode()[k] = w.mode()[k];
    w.axis_velocity()[k] = stored(w.rate_next()[k]);
    w.axis_velocity_before()[k] = stored(w.rate()[k]);
}
#if !GPUSIM_WIDE
// Return whether a row has a large speed before the kick.
GPUSIM_FN bool row_jumps(const World& w, int row) {
    const int c = row / w.block(), *body = w.constraint_bodies() + c * w.slots();
    real scale = real(0);
    for (int s = 0; s < w.constraint_slots()[c]; ++s) {
        const real* j = jacobian_row(w, row, s);
        const real *before = w.twist_before() + 6 * body[s], *after = w.twist() + 6 * body[s];
        scale += size3(j) * (size3(before) + size3(after)) + size3(j + 3) * (size3(before + 3) + size3(after + 3));
    }
    return abs_(row_velocity(w, row, w.twist_before())) > real(CARRY_SMALL) * scale + min_jump(w);
}
// Return whether the initial velocities of a world violate rigid rows, stops or contacts.
GPUSIM_FN bool starts_with_jump(const World& w) {
    if (w.semi_implicit()) return false;
    for (int c = 0; c < w.constraints(); ++c)
        for (int row = c * w.block(); row < c * w.block() + w.constraint_rows()[c]; ++row)
            if ((w.row_element()[row] >= 0 || w.row_coupling()[row] >= 0) && row_jumps(w, row)) return true;
    for (int k = 0; k < w.axes(); ++k) {
        const int contact = w.mode()[k] & CONTACT_BITS;
        if ((contact == AT_LOWER || contact == AT_UPPER) && row_jumps(w, w.axis_row()[k])) return true;
    }
    return contact_jumps(w);
}
GPUSIM_PHASE void store_times(const World& w, int) {
    *w.kick_before_last() = *w.step_last() > 0.0 ? *w.kick_before() : (starts_with_jump(w) ? -1.0 : 0.0);
    *w.posed() = 0;
    const bool begins = *w.sensed_substeps() == 0 || *w.sensed_substeps() >= w.substeps();
    *w.sensed_substeps() = begins ? 1 : *w.sensed_substeps() + 1;
    *w.sensed_time() = (begins ? 0.0 : *w.sensed_time()) + double(kick_time(w));
    *w.kick_before() = double(kick_time(w));
    *w.step_before() = w.h;
    *w.time() += w.h;
    *w.not_converged() += *w.unconverged();
    *w.residual() = stored(*w.residual_now());
    *w.contact_residual() = stored(*w.contact_residual_now());
    watch_accuracy(w);
}
GPUSIM_PHASE void store_control(const World& w, int column) { w.command_before()[column] = w.control(column); }
#endif
