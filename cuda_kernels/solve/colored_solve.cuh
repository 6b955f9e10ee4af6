// Stage solve with the colored solver, and nonlinear position sweeps (gpusim/reference/solve/colored_solve.py).
#pragma once
#include "../joints/coupled_laws.cuh"
#include "../joints/curvature.cuh"
#include "../joints/factor.cuh"
#include "../joints/laws.cuh"
#include "positions.cuh"

#define MAX_SIDE_NUMBERS (6 * GPUSIM_MAX_SLOTS)

GPUSIM_FN bool is_rigid(const World& w, int row) { return w.row_rigid()[row] != 0; }
GPUSIM_FN bool is_overflow(const World& w, int c) { return w.color_of()[c] == OVERFLOW; }
// Return the number of overflow constraints on the body of a slot. For a colored constraint, return 1.
GPUSIM_FN real mass_parts(const World& w, int c, int slot) {
    return is_overflow(w, c) ? real(w.overflow_load()[w.constraint_bodies()[c * w.slots() + slot]]) : real(1);
}
GPUSIM_FN const real* mass_jacobian_row(const World& w, int c, int slot, int local_row) {
    return w.mass_jacobian() + 6 * ((c * w.slots() + slot) * w.block() + local_row);
}

// Join strongly coupled soft axis rows of constraint c with the rigid rows (``held``). Return whether rows were joined
// (gpusim/reference/solve/soft_rows.py).
GPUSIM_FN bool join_soft_rows(const World& w, int c, const real* product, bool* held) {
    const int n = w.block(), used = w.constraint_rows()[c], start = w.constraint_axis_start()[c];
    const int end = w.constraint_axis_start()[c + 1];
    for (int at = start; at < end; ++at) {
        const int axis = w.constraint_axis()[at];
        real impulse, slope;
        loose_part(w, axis, 0, &impulse, &slope);
        const bool stiff = end - start > 1 && slope * w.response()[axis] >= real(COUPLING_LIMIT);
        w.axis_gamma()[axis] = stiff ? real(1) / slope : real(0);
    }
    bool joins[GPUSIM_MAX_BLOCK], any_joins = false;
    for (int at = start; at < end; ++at) {
        const int axis = w.constraint_axis()[at];
        const real gamma = w.axis_gamma()[axis], *reaction = w.axis_reaction() + axis * n;
        joins[at - start] = false;
        for (int to = start; gamma > real(0) && to < end; ++to) {
            const int other = w.constraint_axis()[to];
            if (to == at || !(w.axis_gamma()[other] > real(0))) continue;
            const real* row = product + (w.axis_row()[other] - c * n) * n;
            real cross = real(0);
            for (int r = 0; r < used; ++r) cross += reaction[r] * row[r];
            const real total = w.response()[axis] + gamma, other_total = w.response()[other] + w.axis_gamma()[other];
            if (cross * cross > real(COUPLING_LIMIT) * total * other_total) joins[at - start] = any_joins = true;
        }
    }
    for (int at = start; at < end; ++at) {
        const int axis = w.constraint_axis()[at];
        if (joins[at - start]) {
            held[w.axis_row()[axis] - c * n] = true;
            w.mode()[axis] = w.axis_mode()[axis];
        } else {
            w.axis_gamma()[axis] = real(0);
        }
    }
    return any_joins;
}
// Eliminate the rows ``held`` of constraint c from one of its axis rows.
GPUSIM_FN void eliminate_axis(const World& w, int c, int axis, const real* product, const bool* held) {
    const int n = w.block(), used = w.constraint_rows()[c], local_row = w.axis_row()[axis] - c * n;
    const int slots = w.slots(), used_slots = w.constraint_slots()[c];
    const real *inverse = w.inverse() + c * n * n, alone = product[local_row * n + local_row];
    real *reaction = w.axis_reaction() + axis * n, *motion = w.axis_motion() + axis * 6 * slots;
    real response = alone;
    if (held[local_row]) {
        for (int r = 0; r < used; ++r) reaction[r] = inverse[r * n + local_row] / inverse[local_row * n + local_row];
        response = real(1) / inverse[local_row * n + local_row] - w.axis_gamma()[axis];
    } else {
        for (int r = 0; r < used; ++r) {
            real sum = real(0);
            for (int k = 0; k < used; ++k)
                if (held[k]) sum += inverse[r * n + k] * product[local_row * n + k];
            reaction[r] = -sum;
            if (held[r]) response += reaction[r] * product[local_row * n + r];
        }
    }
    reaction[local_row] = real(1);
    for (int s = 0; s < used_slots; ++s)
        for (int k = 0; k < 6; ++k) {
            real sum = real(0);
            for (int r = 0; r < used; ++r) sum += mass_jacobian_row(w, c, s, r)[k] * reaction[r];
            motion[6 * s + k] = mass_parts(w, c, s) * sum;
        }
    w.response()[axis] = max_(response, max_(real(MIN_RESPONSE) * alone, real(MIN_NUMBER)));
}
// Invert the block of constraint c (rigid and joined rows), and eliminate the block from the remaining axis rows.
GPUSIM_PHASE void prepare_constraint(const World& w, int c) {
    if (!is_swept(w, c)) return;
    const int n = w.block(), used = w.constraint_rows()[c], coupled = coupled_number(w, c);
    const int used_slots = w.constraint_slots()[c], start = w.constraint_axis_start()[c], end = w.constraint_axis_start()[c + 1];
    const real* law = coupled < 0 ? nullptr : coupled_block(w, coupled);
    real product[GPUSIM_MAX_BLOCK * GPUSIM_MAX_BLOCK];
    real* inverse = w.inverse() + c * n * n;
    bool held[GPUSIM_MAX_BLOCK], joined = false;
    for (int r = 0; r < used; ++r) {
        held[r] = law || is_rigid(w, c * n + r);
        for (int k = 0; k < used; ++k) {
            real sum = real(0);
            for (int s = 0; s < used_slots; ++s)
                sum += mass_parts(w, c, s) * dot6(jacobian_row(w, c * n + r, s), mass_jacobian_row(w, c, s, k));
            product[r * n + k] = sum;
        }
    }
    for (int at = start; at < end; ++at) {
        w.mode()[w.constraint_axis()[at]] = 0;
        w.axis_gamma()[w.constraint_axis()[at]] = real(0);
    }
    do {
        for (int r = 0; r < used; ++r) {
            for (int k = 0; k < used; ++k) inverse[r * n + k] = held[r] && held[k] ? product[r * n + k] : real(0);
            const real pivot = inverse[r * n + r] * real(1.0 + REGULARIZATION);
            inverse[r * n + r] = pivot > real(0) ? pivot : real(1);
        }
        if (law)
            for (int r = 0; r < used; ++r)
                for (int k = 0; k < used; ++k) inverse[r * n + k] += law[r * n + k];
        for (int at = start; joined && at < end; ++at) {
            const int axis = w.constraint_axis()[at], local_row = w.axis_row()[axis] - c * n;
            inverse[local_row * n + local_row] += w.axis_gamma()[axis];
        }
        invert_block(inverse, used, n);
        for (int at = start; at < end; ++at) eliminate_axis(w, c, w.constraint_axis()[at], product, held);
        joined = !joined && end - start > 1 && join_soft_rows(w, c, product, held);
    } while (joined);
}
// Recompute the blocks of coupled laws after the laws changed.
GPUSIM_PHASE void prepare_coupled(const World& w, int i) { prepare_constraint(w, w.coupled_constraint()[i]); }
GPUSIM_PHASE void warm_row(const World& w, int row) {
    if (!is_swept(w, row / w.block())) return;
    const real before = real(*w.kick_before());
    w.solved()[row] = real(w.impulse()[row]) * (before > real(0) ? kick_time(w) / before : real(0));
}
GPUSIM_PHASE void warm_body(const World& w, int i) { add_impulses(w, i, w.solved(), w.twist()); }
GPUSIM_PHASE void start_sweeps(const World& w, int) {
    *w.sweeps() = *w.done() = 0;
    *w.unconverged() = w.impulse_tolerance() > 0.0;
    *w.largest_change() = *w.worst() = *w.wanted_change() = *w.greatest_impulse() = real(0);
    *w.contact_change() = *w.largest_load() = *w.contact_residual_now() = real(0);
}

// Read or write the velocities of the bodies of constraint c. Overflow constraints store velocity changes instead.
// overflow_sum adds the changes for each body.
GPUSIM_FN void read_slots(const World& w, int c, const real* velocity, real* local) {
    for (int s = 0; s < w.constraint_slots()[c]; ++s)
        for (int k = 0; k < 6; ++k) local[6 * s + k] = velocity[6 * w.constraint_bodies()[c * w.slots() + s] + k];
}
GPUSIM_FN void write_slots(const World& w, int c, real* velocity, const real* local) {
    for (int s = 0; s < w.constraint_slots()[c]; ++s) {
        const int body = w.constraint_bodies()[c * w.slots() + s];
        for (int k = 0; w.dynamic()[body] && k < 6; ++k) velocity[6 * body + k] = local[6 * s + k];
    }
}
GPUSIM_FN void store_slot_changes(const World& w, int c, const real* velocity, const real* local) {
    for (int s = 0; s < w.constraint_slots()[c]; ++s) {
        const int body = w.constraint_bodies()[c * w.slots() + s];
        for (int k = 0; w.dynamic()[body] && k < 6; ++k)
            w.overflow_change()[6 * (c * w.slots() + s) + k] = (local[6 * s + k] - velocity[6 * body + k]) / mass_parts(w, c, s);
    }
}
// Sum the velocity changes of body b over its overflow constraints.
GPUSIM_FN void overflow_sum(const World& w, int b, real* out) {
    for (int k = 0; k < 6; ++k) out[k] = real(0);
    for (int n = w.body_side_start()[b]; n < w.body_side_start()[b + 1]; ++n) {
        const int side = w.body_side()[n];
        if (!is_overflow(w, side / w.slots())) continue;
        for (int k = 0; k < 6; ++k) out[k] += w.overflow_change()[6 * side + k];
    }
}
// Return the velocity of a row of constraint c, from the velocities of its bodies.
GPUSIM_FN real slots_velocity(const World& w, int c, int local_row, const real* local) {
    const int n = w.block(), slots = w.slots();
    const real* j = w.jacobian() + 6 * (c * slots * n + local_row);
    real sum = dot6(j, local);
    for (int s = 1; s < w.constraint_slots()[c]; ++s) sum += dot6(j + 6 * s * n, local + 6 * s);
    return sum;
}
// Solve the rigid rows, and update the velocities of the bodies. Return the largest impulse.
GPUSIM_SHARED real solve_rigid(const World& w, int c, const real* error, real* local, real* change) {
    const int n = w.block(), used = w.constraint_rows()[c], slots = w.slots();
    const real *inverse = w.inverse() + c * n * n, *m = w.mass_jacobian() + 6 * c * slots * n;
    real max_change = real(0);
    for (int r = 0; r < used; ++r, inverse += n) {
        real sum = real(0);
        for (int k = 0; k < used; ++k) sum += inverse[k] * error[k];
        change[r] = sum;
        if (!(abs_(sum) <= max_change)) max_change = abs_(sum);
    }
    const bool shared = is_overflow(w, c);
    for (int s = 0; s < w.constraint_slots()[c]; ++s, m += 6 * n) {
        real sum[6] = {real(0), real(0), real(0), real(0), real(0), real(0)};
        for (int r = 0; r < used; ++r)
            for (int k = 0; k < 6; ++k) sum[k] += change[r] * m[6 * r + k];
        const real parts = shared ? mass_parts(w, c, s) : real(1);
        for (int k = 0; k < 6; ++k) local[6 * s + k] += parts * sum[k];
    }
    return max_change;
}

// Solve constraint c: the rigid rows as one block, and then each axis row by its law. ``local`` contains the velocities
// of the bodies.
GPUSIM_SHARED void sweep_constraint(const World& w, int c, real* local) {
    const int n = w.block(), used = w.constraint_rows()[c], first = c * n, numbers = 6 * w.constraint_slots()[c];
    real error[GPUSIM_MAX_BLOCK], change[GPUSIM_MAX_BLOCK];
    real* impulse = w.solved() + first;
    const real* bias = w.bias() + first;
    read_slots(w, c, w.twist(), local);
    const int coupled = coupled_number(w, c);
    for (int r = 0; r < used; ++r) {
        error[r] = coupled >= 0 || is_rigid(w, first + r) ? -(slots_velocity(w, c, r, local) + bias[r]) : real(0);
        if (coupled < 0) continue;
        real compliance = real(0);
        for (int k = 0; k < used; ++k) compliance += coupled_block(w, coupled)[r * n + k] * impulse[k];
        error[r] += w.coupled_target()[coupled * n + r] - compliance;
    }
    const int start = w.constraint_axis_start()[c], end = w.constraint_axis_start()[c + 1];
    for (int at = start; end - start > 1 && at < end; ++at) {
        const int axis = w.constraint_axis()[at], local_row = w.axis_row()[axis] - first;
        if (!(w.axis_gamma()[axis] > real(0)) || w.mode()[axis] >= STICK) continue;
        real known, slope;
        linear_part(w, axis, w.mode()[axis], &known, &slope);
        const real speed = slots_velocity(w, c, local_row, local) + bias[local_row];
        error[local_row] = w.axis_gamma()[axis] * (known - slope * speed - impulse[local_row]);
    }
    real max_change = solve_rigid(w, c, error, local, change);
    for (int r = 0; r < used; ++r) impulse[r] += change[r];
    for (int at = start; at < end; ++at) {
        const int axis = w.constraint_axis()[at], local_row = w.axis_row()[axis] - first;
        const real *reaction = w.axis_reaction() + axis * n, *motion = w.axis_motion() + axis * 6 * w.slots();
        const real response = w.response()[axis], speed = slots_velocity(w, c, local_row, local) + bias[local_row];
        int mode;
        const real solved = solve_row(w, axis, speed - response * impulse[local_row], response, &mode);
        const real difference = (solved - speed) / response;
        for (int r = 0; r < used; ++r) impulse[r] += difference * reaction[r];
        for (int k = 0; k < numbers; ++k) local[k] += difference * motion[k];
        w.mode()[axis] = mode;
        if (!(abs_(difference) <= max_change)) max_change = abs_(difference);
    }
    raise_to(w.largest_change(), max_change);
}
GPUSIM_FN int color_member_at(const World& w, int color, int i) { return w.color_constraint()[w.color_start()[color] + i]; }
GPUSIM_PHASE void sweep_overflow(const World& w, int i) {
    real local[MAX_SIDE_NUMBERS];
    sweep_constraint(w, w.overflow()[i], local);
    store_slot_changes(w, w.overflow()[i], w.twist(), local);
}
GPUSIM_PHASE void sweep_color(const World& w, int color, int i) {
    real local[MAX_SIDE_NUMBERS];
    const int c = color_member_at(w, color, i);
    sweep_constraint(w, c, local);
    write_slots(w, c, w.twist(), local);
}
GPUSIM_FN int color_size(const World& w, int color) { return w.color_start()[color + 1] - w.color_start()[color]; }
GPUSIM_PHASE void add_overflow(const World& w, int b) {
    real sum[6];
    overflow_sum(w, b, sum);
    for (int k = 0; k < 6; ++k) w.twist()[6 * b + k] += sum[k];
}
GPUSIM_PHASE void end_sweep(const World& w, int) {
    *w.sweeps() += 1;
    raise_to(w.largest_change(), *w.contact_change());
    store_contact_residual(w);
    *w.done() = *w.largest_change() <= real(w.impulse_tolerance());
    if (*w.done()) *w.unconverged() = 0;
    *w.last_change() = *w.largest_change();
    *w.largest_change() = real(0);
}
// Return the residual of a row of coupled law i (m/s). ``response`` is the velocity of the row per unit impulse.
GPUSIM_FN real coupled_residual(const World& w, int i, int c, int local_row, real* response) {
    const int n = w.block(), row = c * n + local_row;
    const real *gamma = coupled_block(w, i) + local_row * n, *impulse = w.solved() + c * n;
    const real inverse_diagonal = w.inverse()[row * n + local_row], fraction = max_(real(1) - gamma[local_row] * inverse_diagonal, real(0));
    real compliance = real(0);
    for (int k = 0; k < w.constraint_rows()[c]; ++k) compliance += gamma[k] * impulse[k];
    *response = fraction / inverse_diagonal;
    return fraction * (w.coupled_target()[i * n + local_row] - (row_velocity(w, row, w.twist()) + w.bias()[row]) - compliance);
}
// Return the residual of an axis row (m/s). ``response`` is the velocity of the row per unit impulse.
GPUSIM_FN real axis_residual(const World& w, int axis, real* response) {
    const int row = w.axis_row()[axis];
    const real speed = row_velocity(w, row, w.twist()) + w.bias()[row];
    int mode;
    *response = w.response()[axis];
    return solve_row(w, axis, speed - *response * w.solved()[row], *response, &mode) - speed;
}
// Find the maximum residual of the rows, and the maximum impulse change that would solve a soft row.
GPUSIM_PHASE void swept_residual(const World& w, int row) {
    const int c = row / w.block(), local_row = row - c * w.block(), coupled = coupled_number(w, c);
    if (!is_swept(w, c) || local_row >= w.constraint_rows()[c]) return;
    raise_to(w.greatest_impulse(), w.solved()[row]);
    if (is_rigid(w, row)) {
        raise_to(w.worst(), row_velocity(w, row, w.twist()) + w.bias()[row]);
        return;
    }
    real residual = real(0), response = real(1);
    if (coupled >= 0) residual = coupled_residual(w, coupled, c, local_row, &response);
    for (int at = w.constraint_axis_start()[c]; at < w.constraint_axis_start()[c + 1]; ++at)
        if (w.axis_row()[w.constraint_axis()[at]] == row) residual = axis_residual(w, w.constraint_axis()[at], &response);
    raise_to(w.worst(), residual);
    raise_to(w.wanted_change(), residual / response);
}
// If soft rows need a large impulse change, the solve has not converged.
GPUSIM_PHASE void end_swept(const World& w, int) {
    const double change = double(*w.wanted_change());
    const bool counts = change > w.min_contact_change() && change > w.contact_residual_limit() * double(*w.greatest_impulse());
    if (counts) *w.unconverged() = 1;
}

// Correct the position errors of constraint c. The errors are at the newest poses, and the Jacobians
// are from the start of the step.
GPUSIM_SHARED void correct_constraint(const World& w, int c, real* moved) {
    const int n = w.block(), used = w.constraint_rows()[c];
    real error[GPUSIM_MAX_BLOCK], change[GPUSIM_MAX_BLOCK];
    for (int r = 0; r < used; ++r) {
        const real position_error = real(row_error(w, c * n + r));
        error[r] = -(max_(real(MIN_CORRECTION), real(1) / (real(1) + abs_(position_error) / real(FULL_CORRECTION_BELOW))) * position_error);
    }
    for (int k = 0; k < 6 * w.constraint_slots()[c]; ++k) moved[k] = real(0);
    solve_rigid(w, c, error, moved, change);
}
GPUSIM_PHASE void correct_overflow(const World& w, int i) {
    const int c = w.overflow()[i];
    real moved[MAX_SIDE_NUMBERS];
    correct_constraint(w, c, moved);
    for (int s = 0; s < w.constraint_slots()[c]; ++s) {
        if (!w.dynamic()[w.constraint_bodies()[c * w.slots() + s]]) continue;
        for (int k = 0; k < 6; ++k) w.overflow_change()[6 * (c * w.slots() + s) + k] = moved[6 * s + k] / mass_parts(w, c, s);
    }
}
GPUSIM_PHASE void correct_color(const World& w, int color, int i) {
    const int c = color_member_at(w, color, i);
    real moved[MAX_SIDE_NUMBERS];
    correct_constraint(w, c, moved);
    for (int s = 0; s < w.constraint_slots()[c]; ++s) {
        const int body = w.constraint_bodies()[c * w.slots() + s];
        if (!w.dynamic()[body]) continue;
        move_body(w, body, moved + 6 * s);
        refresh_rotation(w, body);
    }
}
GPUSIM_PHASE void move_overflow(const World& w, int b) {
    real sum[6];
    overflow_sum(w, b, sum);
    move_body(w, b, sum);
    refresh_rotation(w, b);
}

// Split impulses: sweeps that correct a fraction of the position errors. The result is
// added to the push-outs of contacts.
GPUSIM_PHASE void clear_displacement(const World& w, int i) {
    if (!*w.pushing()) w.displacement()[i] = real(0);
}
GPUSIM_SHARED void split_constraint(const World& w, int c, real* local) {
    const int n = w.block(), used = w.constraint_rows()[c];
    real error[GPUSIM_MAX_BLOCK], change[GPUSIM_MAX_BLOCK];
    read_slots(w, c, w.displacement(), local);
    for (int r = 0; r < used; ++r) {
        const int row = c * n + r;
        error[r] = is_rigid(w, row) ? -(slots_velocity(w, c, r, local) + real(SPLIT_FRACTION) * split_error(w, row)) : real(0);
    }
    solve_rigid(w, c, error, local, change);
}
GPUSIM_PHASE void split_overflow(const World& w, int i) {
    real local[MAX_SIDE_NUMBERS];
    split_constraint(w, w.overflow()[i], local);
    store_slot_changes(w, w.overflow()[i], w.displacement(), local);
}
GPUSIM_PHASE void split_color(const World& w, int color, int i) {
    real local[MAX_SIDE_NUMBERS];
    const int c = color_member_at(w, color, i);
    split_constraint(w, c, local);
    write_slots(w, c, w.displacement(), local);
}
GPUSIM_PHASE void split_overflow_body(const World& w, int b) {
    real sum[6];
    overflow_sum(w, b, sum);
    for (int k = 0; k < 6; ++k) w.displacement()[6 * b + k] += sum[k];
}
