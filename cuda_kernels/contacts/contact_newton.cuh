// Newton's method for few contacts of worlds with joints (equations: gpusim/reference/contacts/contact_newton.py). If
// Newton's method fails, the solver uses sweeps.
#pragma once
#include "contact_condense.cuh"

// Rows of condensed_vector. Each row has one value per number.
enum {
    AT_NOW,         // impulse
    AT_VELOCITY,    // velocity, including bias and compliance
    AT_BEFORE,      // impulse at the start
    AT_COMPLIANCE,  // compliance
    AT_SCALE,       // inverse of the velocity change along a unit impulse
    AT_COEFFICIENT,       // friction limit per unit of normal impulse
    AT_CONSTANT_LIMIT,       // friction limit without normal impulse
    AT_RESIDUAL,      // distance from the projection
    AT_ALONG,       // unit vector of sliding friction
    AT_ACROSS,      // friction limit divided by the norm of the free impulse
    AT_STEP,        // Newton step of the impulse
    AT_STEP_VELOCITY,
    AT_SQUARE,      // squared distance from the projection
};
enum { STATE_RELEASED, STATE_HELD, STATE_SLIDING };

GPUSIM_FN real* vector_at(const World& w, int row) { return w.condensed_vector() + row * w.condensed_total(); }
// Row of Newton's equations, with the right-hand side at the end, and row of R. On a GPU, the entries of a column are
// adjacent in memory.
#if WHOLE_BLOCKS
GPUSIM_FN real* equation_at(const World& w, int row) { return w.condensed_row() + row * (w.condensed_numbers() + 8); }
GPUSIM_FN const real* responses_at(const World& w, Island e, int number) { return column_at(w, number) - e.first; }
#else
template <class T> struct SpreadRow {
    T* first;
    int step;
    MEMBER T& operator[](int k) const { return first[k * step]; }
};
GPUSIM_FN SpreadRow<real> equation_at(const World& w, int row) { return {w.condensed_row() + row, w.condensed_numbers()}; }
GPUSIM_FN SpreadRow<const real> responses_at(const World& w, Island e, int number) {
    return {w.condensed_response() + (number - e.first), w.condensed_numbers()};
}
#endif

// Return whether Newton's method starts without a sweep: R is valid, or a point is new or slides.
GPUSIM_FN bool condenses_at_once(const World& w) {
    if (*w.island_count() == 0) return false;
    if (*w.condensed_fits()) return true;
    for (int n = 0; n < condensed_size(w); ++n) {
        const ReadLane r = read_record(w, condensed_member(w, n));
        for (int k = 0; k < int(r[AT_COUNT]); ++k) {
            const ReadLane p = point_record(r, k);
            const real limit = real(SLIDING_SHARE) * r[AT_FRICTION] * (p[AT_IMPULSE] + p[AT_PUSHED]);
            const real square = p[AT_IMPULSE + 1] * p[AT_IMPULSE + 1] + p[AT_IMPULSE + 2] * p[AT_IMPULSE + 2];
            if (!(p[AT_AGE] > real(0)) || (limit > real(0) && square >= limit * limit)) return true;
        }
    }
    return false;
}

// Set the impulse and the law of a number. ``velocity`` is the velocity along the unit wrench, including the bias.
GPUSIM_FN void start_number(const World& w, int number, real impulse, real velocity, real compliance, real scale,
                            real coefficient, real constant_limit) {
    vector_at(w, AT_NOW)[number] = vector_at(w, AT_BEFORE)[number] = impulse;
    vector_at(w, AT_VELOCITY)[number] = velocity + compliance * impulse;
    vector_at(w, AT_COMPLIANCE)[number] = compliance;
    vector_at(w, AT_SCALE)[number] = scale;
    vector_at(w, AT_COEFFICIENT)[number] = coefficient;
    vector_at(w, AT_CONSTANT_LIMIT)[number] = constant_limit;
    vector_at(w, AT_STEP)[number] = real(0);
}
// Before and after the iterations, the equations contain 36 numbers for each manifold of the island: the result of
// sum_path, and then the wrench.
GPUSIM_FN real* condensed_part(const World& w, int item) { return w.condensed_row() + 36 * item; }
// Item: a manifold of the island. Set its numbers.
GPUSIM_PHASE void start_condensed(const World& w, Island e, int first, int item) {
    const int n = first + item;
    const Lane r = record(w, condensed_member(w, n));
    const real none = real(0);
    const auto response = [&](int number) { return column_at(w, number)[number - e.first]; };
    real twist[6];
    relative_twist(r, w.twist(), twist);
    if (has_path(w, n)) add_path_twist(w, path_of(w, n), condensed_part(w, item), twist);
    int at = w.condensed_start()[n];
    if (item == 0) *w.newton_fraction() = real(0);
    const auto velocity = [&](int number) { return dot6(w.condensed_wrench() + 6 * number, twist); };
    for (int k = 0; k < int(r[AT_COUNT]); ++k, at += 3) {
        const Lane p = point_record(r, k);
        real floor[2] = {};
        for (int d = 0; d < 2 && has_path(w, n); ++d) floor[d] = w.point_floor()[2 * (4 * path_of(w, n) + k) + d];
        const real tangent_scale = real(1) / max_(real(p[AT_MASS + 3]), real(p[AT_MASS + 5]));
        const real friction = r[AT_FRICTION];
        start_number(w, at, p[AT_IMPULSE], velocity(at) + p[AT_BIAS], floor[0] + p[AT_GAMMA], p[AT_INVERSE_MASS], none, none);
        for (int d = 1; d < 3; ++d)
            start_number(w, at + d, p[AT_IMPULSE + d], velocity(at + d) + p[AT_BIAS + d], floor[1], tangent_scale,
                         friction * p[AT_INVERSE_MASS + 2], friction * p[AT_PUSHED]);
    }
    if (r[AT_SPINNING] > real(0)) {
        start_number(w, at, r[AT_TORQUE], velocity(at), none, real(1) / response(at), r[AT_SPINNING], none);
        ++at;
    }
    if (!(r[AT_ROLLING] > real(0))) return;
    const real torque_scale = real(1) / max_(response(at), response(at + 1));
    for (int d = 1; d < 3; ++d, ++at)
        start_number(w, at, r[AT_TORQUE + d], velocity(at), none, torque_scale, r[AT_ROLLING], none);
}

// Return the impulse after a fraction of the Newton step, or its velocity.
GPUSIM_FN real after_step(const World& w, int row, int step_row, int number) {
    const real now = vector_at(w, row)[number], fraction = *w.newton_fraction();
    return fraction > real(0) ? now - vector_at(w, step_row)[number] * fraction : now;
}
GPUSIM_FN real trial_impulse(const World& w, int number) { return after_step(w, AT_NOW, AT_STEP, number); }
GPUSIM_FN real free_impulse(const World& w, int number, real impulse, real scale) {
    return impulse - after_step(w, AT_VELOCITY, AT_STEP_VELOCITY, number) * scale;
}
GPUSIM_FN void set_projection(const World& w, int number, int state, bool idle, real residual, real along, real across) {
    vector_at(w, AT_RESIDUAL)[number] = residual;
    vector_at(w, AT_ALONG)[number] = along;
    vector_at(w, AT_ACROSS)[number] = across;
    index_at(w, AT_STATE)[number] = state;
    index_at(w, AT_COLUMN)[number] = idle ? -1 : 0;
}
// Item: a number of the island. Project a normal impulse, a torque, or both tangential impulses after a fraction of the
// Newton step. Zeros that do not change are idle.
GPUSIM_FN void project_number(const World& w, Island e, int item) {
    const int number = e.first + item, kind = index_at(w, AT_KIND)[number], width = kind == KIND_FIRST ? 2 : 1;
    if (kind == KIND_SECOND) return;
    const real none = real(0), scale = vector_at(w, AT_SCALE)[number], now = trial_impulse(w, number);
    const real free = free_impulse(w, number, now, scale), other = width > 1 ? trial_impulse(w, number + 1) : none;
    const real other_free = width > 1 ? free_impulse(w, number + 1, other, scale) : none;
    int state = kind == KIND_NORMAL && free > none ? STATE_HELD : STATE_RELEASED;
    real limit = none, inverse_size = none;
    if (kind != KIND_NORMAL) {
        real load = none;
        for (int k = index_at(w, AT_NORMAL)[number]; k < index_at(w, AT_NORMAL_END)[number]; k += 3)
            load += max_(trial_impulse(w, k), none);
        limit = vector_at(w, AT_COEFFICIENT)[number] * load + vector_at(w, AT_CONSTANT_LIMIT)[number];
        const real square = free * free + other_free * other_free;
        if (limit > none) state = square > limit * limit ? STATE_SLIDING : STATE_HELD;
        if (state == STATE_SLIDING) inverse_size = real(1) / sqrt_(square);
    }
    const real along = free * inverse_size, other_along = other_free * inverse_size, across = limit * inverse_size;
    const bool held = state == STATE_HELD, slides = state == STATE_SLIDING;
    const bool idle = !held && !slides && now == none && other == none;
    const real residual = now - (held ? free : slides ? limit * along : none);
    const real other_residual = other - (held ? other_free : slides ? limit * other_along : none);
    set_projection(w, number, state, idle, residual, along, across);
    vector_at(w, AT_SQUARE)[number] = residual * residual + other_residual * other_residual;
    if (width == 1) return;
    set_projection(w, number + 1, state, idle, other_residual, other_along, across);
    vector_at(w, AT_SQUARE)[number + 1] = none;
}
GPUSIM_FN real residual_square(const World& w, Island e) {
    real sum = real(0);
    for (int at = e.first; at < e.end; ++at) sum += vector_at(w, AT_SQUARE)[at];
    return sum;
}
GPUSIM_FN real condensed_load(const World& w, Island e) {
    real load = real(0);
    for (int at = e.first; at < e.end; ++at)
        if (index_at(w, AT_KIND)[at] == KIND_NORMAL) load = max_(load, vector_at(w, AT_NOW)[at]);
    return load;
}
// List the unknowns of Newton's equations: all numbers that are not idle.
GPUSIM_FN void list_unknowns(const World& w, Island e) {
    int *column = index_at(w, AT_COLUMN), unknowns = 0;
    for (int at = e.first; at < e.end; ++at) {
        if (column[at] < 0) continue;
        column[at] = unknowns;
        index_at(w, AT_UNKNOWN)[e.first + unknowns++] = at;
    }
    *w.newton_unknowns() = unknowns;
}
// Return whether an impulse has changed by more than newton_bound, as a velocity.
GPUSIM_FN bool jams(const World& w, Island e) {
    const real *now = vector_at(w, AT_NOW), *before = vector_at(w, AT_BEFORE), *scale = vector_at(w, AT_SCALE);
    for (int at = e.first; at < e.end; ++at)
        if (abs_(now[at] - before[at]) / scale[at] > *w.newton_bound()) return true;
    return false;
}
// After a step, decide whether the iterations end with a solution, end with a failure, or continue. If the step did not
// reduce the error, increase the damping.
GPUSIM_FN void judge_newton(const World& w, Island e) {
    const bool moved = *w.newton_fraction() > real(0);
    const real load = condensed_load(w, e), before = *w.newton_square(), square = *w.newton_trial();
    *w.newton_square() = square;
    *w.newton_fraction() = real(1);
    *w.newton_trials() = NEWTON_HALVINGS + 1;
    const real tolerance = max_(real(NEWTON_SETTLED) * load, real(w.impulse_tolerance()));
    const real coarse_tolerance = real(CONVERGED) * load;
    if (!moved) *w.newton_damping() *= real(NEWTON_GROWTH);
    bool stalls = *w.newton_damping() > real(NEWTON_MAX_DAMPING) || *w.newton_remaining() == 1;
    const bool slow = stalls || square > real(NEWTON_SLOW) * before;
    bool ends = square <= tolerance * tolerance || (slow && square <= coarse_tolerance * coarse_tolerance);
    if (ends && jams(w, e)) {
        ends = false;
        stalls = true;
    }
    *w.newton_remaining() = ends || stalls ? 0 : *w.newton_remaining() - 1;
    w.island_failed()[e.number] = stalls && !ends;
    if (!ends) return list_unknowns(w, e);
    for (int at = e.first; at < e.end; ++at)
        if (index_at(w, AT_KIND)[at] == KIND_NORMAL) vector_at(w, AT_NOW)[at] = max_(vector_at(w, AT_NOW)[at], real(0));
    *w.contact_change() = max_(*w.contact_change(), sqrt_(square));
    *w.largest_load() = max_(*w.largest_load(), load);
}
// Finish Newton's method in all islands. If some manifolds have no solution, the solver sweeps. If Newton's method has
// changed velocities, the sweeps restart with a new search direction.
GPUSIM_FN void end_newton(const World& w) {
    bool all = condensed_size(w) == *w.touching(), some = false;
    for (int k = 0; k < *w.island_count(); ++k) {
        all = all && !w.island_failed()[k];
        some = some || !w.island_failed()[k];
    }
    *w.condensed_failed() = !all;
    if (all) {
        w.sweep_change()[(*w.sweep_count())++] = *w.contact_change();
        store_contact_residual(w);
        *w.done() = 1;
        return;
    }
    *w.contact_change() = *w.largest_load() = real(0);
    if (some) *w.square_before() = 0.0;
}
GPUSIM_FN void start_newton(const World& w, Island e) {
    const real *residual = vector_at(w, AT_RESIDUAL), *now = vector_at(w, AT_NOW), *scale = vector_at(w, AT_SCALE);
    real max_residual = real(0), max_impulse = real(0);  // as velocities
    GPUSIM_ROLLED
    for (int at = e.first; at < e.end; ++at) {
        max_residual = max_(max_residual, abs_(residual[at]) / scale[at]);
        max_impulse = max_(max_impulse, abs_(now[at]) / scale[at]);
    }
    *w.newton_bound() = real(NEWTON_GAIN) * max_residual + max_impulse;
    *w.newton_trial() = residual_square(w, e);
    *w.newton_square() = *w.newton_trial() / real(NEWTON_SLOW);
    *w.newton_fraction() = real(1);
    *w.newton_damping() = real(NEWTON_DAMPING);
    *w.newton_remaining() = NEWTON_PASSES + 1;
}
#if WHOLE_BLOCKS
// On a CPU, the rows of equations are padded to multiples of eight. A chunk fits into a register, because compilers move
// larger vectors through the stack.
#if defined(__AVX512F__)
#define CHUNK 8
#else
#define CHUNK int(32 / sizeof(real))
#endif
typedef real Chunk __attribute__((vector_size(CHUNK * sizeof(real)), aligned(alignof(real)), may_alias));
GPUSIM_FN Chunk& chunk(real* at) { return *reinterpret_cast<Chunk*>(at); }
GPUSIM_FN const Chunk& chunk(const real* at) { return *reinterpret_cast<const Chunk*>(at); }
#endif
// Set one of Newton's equations: a row of the derivative, and the distance from the projection.
GPUSIM_FN void set_equation(const World& w, Island e, int row) {
    const int unknowns = *w.newton_unknowns(), *number = index_at(w, AT_UNKNOWN) + e.first, row_number = number[row];
    const int kind = index_at(w, AT_KIND)[row_number], state = index_at(w, AT_STATE)[row_number];
    const real scale = vector_at(w, AT_SCALE)[row_number];
    const auto out = equation_at(w, row);
    for (int k = unknowns; k < ((unknowns + 8) & ~7); ++k) out[k] = real(0);
    out[unknowns] = vector_at(w, AT_RESIDUAL)[row_number];
    const auto response = responses_at(w, e, row_number);
    if (state == STATE_RELEASED) {
        for (int k = 0; k < unknowns; ++k) out[k] = real(k == row);
        return;
    }
    if (state == STATE_HELD) {
        for (int k = 0; k < unknowns; ++k) out[k] = response[number[k]] * scale;
        out[row] += vector_at(w, AT_COMPLIANCE)[row_number] * scale + *w.newton_damping();
        return;
    }
    // Sliding: the direction follows the free impulse, and the radius follows the normal impulses.
    const real along = vector_at(w, AT_ALONG)[row_number], across = vector_at(w, AT_ACROSS)[row_number];
    const real own_factor = across * (real(1) - along * along);
    for (int k = 0; k < unknowns; ++k) out[k] = own_factor * scale * response[number[k]];
    out[row] += real(1) + *w.newton_damping()
        - own_factor * (real(1) - scale * vector_at(w, AT_COMPLIANCE)[row_number]);
    if (kind == KIND_FIRST || kind == KIND_SECOND) {
        const int other = kind == KIND_FIRST ? row_number + 1 : row_number - 1, column = index_at(w, AT_COLUMN)[other];
        const real factor = -across * along * vector_at(w, AT_ALONG)[other];
        for (int k = 0; k < unknowns; ++k) out[k] += factor * scale * responses_at(w, e, other)[number[k]];
        out[column] -= factor * (real(1) - scale * vector_at(w, AT_COMPLIANCE)[other]);
    }
    for (int k = index_at(w, AT_NORMAL)[row_number]; k < index_at(w, AT_NORMAL_END)[row_number]; k += 3)
        if (vector_at(w, AT_NOW)[k] > real(0))
            out[index_at(w, AT_COLUMN)[k]] -= along * vector_at(w, AT_COEFFICIENT)[row_number];
}
// Item: one of the rows below row k on a GPU, all of them on a CPU.
GPUSIM_FN int rows_below(int unknowns, int k) { return WHOLE_BLOCKS ? 1 : unknowns - k - 1; }
GPUSIM_FN void eliminate_number(const World& w, int unknowns, int k, int item) {
    const auto pivot = equation_at(w, k);
    const real inverse = real(1) / pivot[k];
#if WHOLE_BLOCKS
    (void)item;
    for (int row = k + 1; row < unknowns; ++row) {
        real* out = equation_at(w, row);
        const real factor = out[k] * inverse;
        for (int at = k & -CHUNK; at <= unknowns; at += CHUNK) chunk(out + at) -= chunk(pivot + at) * factor;
    }
#else
    const auto out = equation_at(w, k + 1 + item);
    const real factor = out[k] * inverse;
    for (int at = k + 1; at <= unknowns; ++at) out[at] -= pivot[at] * factor;
#endif
}
GPUSIM_FN void substitute_number(const World& w, Island e, int unknowns, int k, int row) {
    const auto pivot = equation_at(w, k);
    const real step = pivot[unknowns] * (real(1) / pivot[k]);
    if (row == k) vector_at(w, AT_STEP)[index_at(w, AT_UNKNOWN)[e.first + k]] = step;
    else equation_at(w, row)[unknowns] -= equation_at(w, row)[k] * step;
}
// Item: one number on a GPU, all numbers on a CPU.
GPUSIM_FN int condensed_items(Island e) { return WHOLE_BLOCKS ? 1 : e.end - e.first; }
GPUSIM_FN void move_numbers(const World& w, Island e, int item) {
    const int unknowns = *w.newton_unknowns(), *number = index_at(w, AT_UNKNOWN) + e.first;
    const real* step = vector_at(w, AT_STEP);
#if WHOLE_BLOCKS
    (void)item;
    // The last chunk may reach into the next island, whose values in this row are not in use, or into the next row, at
    // values of an island that is already solved.
    for (int at = e.first; at < e.end; at += CHUNK) {
        Chunk sum = chunk(vector_at(w, AT_COMPLIANCE) + at) * chunk(step + at);
        for (int k = 0; k < unknowns; ++k) sum += chunk(column_at(w, number[k]) + (at - e.first)) * step[number[k]];
        chunk(vector_at(w, AT_STEP_VELOCITY) + at) = sum;
    }
#else
    const int at = e.first + item;
    real sum = vector_at(w, AT_COMPLIANCE)[at] * step[at];
    for (int k = 0; k < unknowns; ++k) sum += column_at(w, number[k])[item] * step[number[k]];
    vector_at(w, AT_STEP_VELOCITY)[at] = sum;
#endif
}
// Halve the step until the impulses are closer to their projections. If no step helps, the last trial has no step.
GPUSIM_FN void judge_trial(const World& w, Island e) {
    const int trials = *w.newton_trials() - 1;
    *w.newton_trial() = residual_square(w, e);
    const bool ends = trials == 0 || *w.newton_trial() < *w.newton_square();
    *w.newton_trials() = ends ? 0 : trials;
    if (!ends) *w.newton_fraction() *= real(trials > 1 ? 0.5 : 0.0);
}
GPUSIM_FN void take_step(const World& w, Island e, int item) {
    const int number = e.first + item;
    vector_at(w, AT_NOW)[number] = trial_impulse(w, number);
    vector_at(w, AT_VELOCITY)[number] = after_step(w, AT_VELOCITY, AT_STEP_VELOCITY, number);
    vector_at(w, AT_STEP)[number] = real(0);
}
// Item: a manifold of the island. Store its impulses and its wrench.
GPUSIM_PHASE void store_condensed(const World& w, int first_manifold, int item) {
    const int n = first_manifold + item, first = w.condensed_start()[n], m = condensed_member(w, n);
    Lane r = record(w, m);
    real wrench[6] = {};
    for (int at = first; at < w.condensed_start()[n + 1]; ++at) {
        const real change = vector_at(w, AT_NOW)[at] - vector_at(w, AT_BEFORE)[at];
        real unit[6];
        read_numbers<6>(w.condensed_wrench() + 6 * at, unit);
        for (int k = 0; k < 6; ++k) wrench[k] += unit[k] * change;
    }
    int at = first;
    for (int k = 0; k < int(r[AT_COUNT]); ++k)
        for (int d = 0; d < 3; ++d) point_record(r, k)[AT_IMPULSE + d] = vector_at(w, AT_NOW)[at++];
    if (r[AT_SPINNING] > real(0)) r[AT_TORQUE] = vector_at(w, AT_NOW)[at++];
    for (int d = 1; r[AT_ROLLING] > real(0) && d < 3; ++d) r[AT_TORQUE + d] = vector_at(w, AT_NOW)[at++];
    write_numbers<6>(wrench, condensed_part(w, item));
    if (!w.island_nodes()) return;
    // If other islands are swept, sweeps skip this manifold, and its search direction is zero.
    w.sweep_square()[m] = real(0);
    for (int k = 0; k < int(r[AT_COUNT]); ++k)
        for (int d = 0; d < 3; ++d) point_record(r, k)[AT_DELTA + d] = real(0);
}
GPUSIM_PHASE void move_condensed(const World& w, int first, int item) {
    const int m = condensed_member(w, first + item);
    move_joined(w, m, record(w, m), condensed_part(w, item), w.twist());
}
