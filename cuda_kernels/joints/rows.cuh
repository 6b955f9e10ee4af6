// Rows and sides, and products with the Jacobian. A side is one slot of one constraint, with the index constraint *
// slots + slot. A row has the index constraint * block + row of the constraint.
#pragma once
#include "elements.cuh"
#include "../math/block_rows.cuh"

#if !GPUSIM_WIDE
// Start a substep: set the duration of the last substep, and reset peaks.
GPUSIM_PHASE void set_times(const World& w, int) {
    *w.step_last() = *w.step_before();
    *w.pushing() = 0;
    *w.loop_gap() = 0.0;
}
#endif
GPUSIM_FN real h_prev(const World& w) { return real(*w.step_last()); }
GPUSIM_FN real kick_time(const World& w) {
    return w.semi_implicit() ? real(w.h) : real(0.5) * (real(*w.step_last()) + real(w.h));
}

// Return the size of a part, for a list in at most PARTS parts.
GPUSIM_FN int part_size(int count) { return (count + PARTS - 1) / PARTS; }

#if !GPUSIM_WIDE
// Return whether the world has contacts. Builds for models without shapes contain no contact code.
GPUSIM_FN bool touches(const World& w) { return GPUSIM_SHAPES && w.pairs() && *w.touching() > 0; }
#endif
// A hub is a body with many constraints. The factor contains its velocity change as an unknown, in an empty constraint
// (gpusim/compiler/elimination.py). Return whether constraint c represents a hub.
GPUSIM_FN bool is_hub(const World& w, int c) { return w.hubs() && w.hub_body()[c] >= 0; }
GPUSIM_FN bool is_hub_body(const World& w, int body) { return w.hubs() && w.body_hub()[body] >= 0; }
// Return whether sweeps solve constraint c, instead of the direct solver.
GPUSIM_FN bool is_swept(const World& w, int c) {
#if GPUSIM_SWEPT
    return w.color_of()[c] != FACTORED;
#else
    return (void)w, (void)c, !GPUSIM_DIRECT;
#endif
}
GPUSIM_FN bool is_swept_row(const World& w, int row) { return GPUSIM_SWEPT && is_swept(w, row / w.block()); }
// Return the index of the coupled law of constraint c, or -1, and its compliances
// (gpusim/reference/joints/coupled_laws.py).
GPUSIM_FN int coupled_number(const World& w, int c) {
#if GPUSIM_COUPLED
    return w.constraint_coupled()[c];
#else
    return (void)w, (void)c, -1;
#endif
}
GPUSIM_FN const real* coupled_block(const World& w, int i) { return w.coupled_gamma() + i * w.block() * w.block(); }
GPUSIM_FN int jacobian_offset(const World& w, int row, int slot) {
    const int c = row / w.block();
    return 6 * ((c * w.slots() + slot) * w.block() + row - c * w.block());
}
GPUSIM_FN const real* jacobian_row(const World& w, int row, int slot) { return w.jacobian() + jacobian_offset(w, row, slot); }
GPUSIM_FN real dot6(const real* a, const real* b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5];
}
// Return the response of a row to its own impulse through hubs. The blocks of J M^-1 J^T do not contain this response.
GPUSIM_FN real hub_response(const World& w, int row) {
    real sum = real(0);
    if (!w.hubs()) return sum;
    const int c = row / w.block(), taken = w.constraint_slots()[c];
    for (int s = 0; s < taken; ++s)
        if (is_hub_body(w, w.constraint_bodies()[c * w.slots() + s]))
            sum += dot6(jacobian_row(w, row, s), w.mass_jacobian() + jacobian_offset(w, row, s));
    return sum;
}
// Return J v of one row.
GPUSIM_FN real row_velocity(const World& w, int row, const real* twist) {
    const int c = row / w.block(), slots = w.slots();
    const real* j = w.jacobian() + 6 * (c * slots * w.block() + row - c * w.block());
    const int* body = w.constraint_bodies() + c * slots;
    real sum = dot6(j, twist + 6 * body[0]);
    for (int s = 1; s < w.constraint_slots()[c]; ++s) sum += dot6(j + 6 * s * w.block(), twist + 6 * body[s]);
    return sum;
}
// Compute M^-1 J^T p of one body: the sum over its sides in a fixed order.
GPUSIM_FN void impulse_response(const World& w, int body, const real* impulse, real* out) {
    for (int k = 0; k < 6; ++k) out[k] = real(0);
    const int block = w.block();
    for (int n = w.body_side_start()[body]; n < w.body_side_start()[body + 1]; ++n) {
        const int side = w.body_side()[n], c = side / w.slots(), used = w.constraint_rows()[c];
        const real *m = w.mass_jacobian() + 6 * side * block, *p = impulse + c * block;
#if WHOLE_BLOCKS
        Six<real> sum = Six<real>::zero();
        for (int r = 0; r < used; ++r) sum = sum + Six<real>::load(m + 6 * r) * p[r];
        (Six<real>::load(out) + sum).store(out);
#else
        real sum[6] = {real(0), real(0), real(0), real(0), real(0), real(0)}, row[6];
        for (int r = 0; r < used; ++r) {
            read_numbers<6>(m + 6 * r, row);
            for (int k = 0; k < 6; ++k) sum[k] += p[r] * row[k];
        }
        for (int k = 0; k < 6; ++k) out[k] += sum[k];
#endif
    }
}
// Item: a body on a CPU, one or two of its six velocity components on a GPU.
constexpr int BODY_NUMBERS = WHOLE_BLOCKS ? 6 : PAIRED + 1;
GPUSIM_FN int body_items(const World& w) { return 6 / BODY_NUMBERS * w.bodies(); }
// Add the effect of impulses to the velocities ``out``, (bodies, 6).
GPUSIM_FN void add_impulses(const World& w, int item, const real* impulse, real* out) {
    real moved[BODY_NUMBERS] = {};
#if WHOLE_BLOCKS
    impulse_response(w, item, impulse, moved);
#else
    const int body = BODY_NUMBERS * item / 6, number = BODY_NUMBERS * item - 6 * body, block = w.block();
    for (int n = w.body_side_start()[body]; n < w.body_side_start()[body + 1]; ++n) {
        const int side = w.body_side()[n], c = side / w.slots(), used = w.constraint_rows()[c];
        const real *m = w.mass_jacobian() + 6 * side * block + number, *p = impulse + c * block;
        real sum[BODY_NUMBERS] = {}, part[BODY_NUMBERS];
        for (int r = 0; r < used; ++r) {
            read_numbers<BODY_NUMBERS>(m + 6 * r, part);
            for (int k = 0; k < BODY_NUMBERS; ++k) sum[k] += p[r] * part[k];
        }
        for (int k = 0; k < BODY_NUMBERS; ++k) moved[k] += sum[k];
    }
#endif
    for (int k = 0; k < BODY_NUMBERS; ++k) out[BODY_NUMBERS * item + k] += moved[k];
}
#if !GPUSIM_WIDE
// Store the residual of a solve: the maximum error of the rigid rows.
GPUSIM_PHASE void end_solve(const World& w, int) {
    *w.residual_now() = *w.worst();
    *w.worst() = *w.worst_change() = real(0);
}
GPUSIM_PHASE void skip_solve(const World& w, int) {
    *w.residual_now() = *w.worst() = *w.contact_residual_now() = real(0);
    *w.unconverged() = 0;
}
#endif
// Return the polynomial of the first element of curved coupling c, and its slope.
GPUSIM_FN double curve_value(const World& w, int c, double x) {
    return x * x * (w.coupling_curve()[3 * c] + x * (w.coupling_curve()[3 * c + 1] + x * w.coupling_curve()[3 * c + 2]));
}
GPUSIM_FN double curve_slope(const World& w, int c, double x) {
    return x * (2.0 * w.coupling_curve()[3 * c] +
                x * (3.0 * w.coupling_curve()[3 * c + 1] + x * (4.0 * w.coupling_curve()[3 * c + 2])));
}
// Return the position error of a row at the current poses, or 0 for an axis row.
GPUSIM_SHARED double row_error(const World& w, int row) {
    const int element = w.row_element()[row], coupling = w.row_coupling()[row];
    if (element >= 0) return element_value_now(w, element);
    if (coupling < 0) return 0.0;
    int term = w.coupling_start()[coupling];
    double value = w.coupling_factor()[term] * element_value_now(w, w.coupling_element()[term]);
    while (++term < w.coupling_start()[coupling + 1])
        value += w.coupling_factor()[term] * element_value_now(w, w.coupling_element()[term]);
    if (w.coupling_curved()[coupling])
        value += curve_value(w, coupling, element_value_now(w, w.coupling_element()[w.coupling_start()[coupling]]));
    return value - w.coupling_offset()[coupling];
}
