// Unit wrenches of the impulses of islands, and the velocities that they cause. A *number* is an impulse of a contact
// point along an axis of the frame, or a torque impulse about an axis. R = F^T (C M^-1 C^T - W^T E^-1 W) F gives the
// velocities that unit impulses cause (Delassus matrix, equations: gpusim/reference/contacts/contact_newton.py).
#pragma once
#include "contact_islands.cuh"

// Rows of condensed_index. The normal impulses that limit a friction number are AT_NORMAL,
// AT_NORMAL + 3, ... below AT_NORMAL_END.
enum { AT_KIND, AT_NORMAL, AT_NORMAL_END, AT_STATE, AT_UNKNOWN, AT_COLUMN };
enum { KIND_NORMAL, KIND_FIRST, KIND_SECOND, KIND_SPIN };

GPUSIM_FN int* index_at(const World& w, int row) { return w.condensed_index() + row * w.condensed_total(); }
// Return a column of R. Entry k of the column belongs to number ``first`` + k, because R is zero between islands.
GPUSIM_FN real* column_at(const World& w, int number) { return w.condensed_response() + number * w.condensed_numbers(); }

GPUSIM_FN void set_number(const World& w, int number, int kind, int normal, int end) {
    index_at(w, AT_KIND)[number] = kind;
    index_at(w, AT_NORMAL)[number] = normal;
    index_at(w, AT_NORMAL_END)[number] = end;
}
GPUSIM_FN void set_torque(const World& w, ReadLane r, int number, int axis) {
    for (int k = 0; k < 3; ++k) {
        w.condensed_wrench()[6 * number + k] = real(0);
        w.condensed_wrench()[6 * number + 3 + k] = r[AT_FRAME + 3 * axis + k];
    }
}
// Set the unit wrenches of the n-th manifold: points, then spinning torque, then rolling torques.
GPUSIM_PHASE void condense_manifold(const World& w, int n) {
    if (n >= condensed_size(w)) return;
    const ReadLane r = read_record(w, condensed_member(w, n));
    const int first = w.condensed_start()[n], end = first + 3 * int(r[AT_COUNT]);
    for (int at = first; at < end; at += 3)
        for (int d = 0; d < 3; ++d) {
            real wrench[6];
            unit_wrench(r, point_record(r, (at - first) / 3), d, wrench);
            write_numbers<6>(wrench, w.condensed_wrench() + 6 * (at + d));
            set_number(w, at + d, d, at, d ? at + 1 : at);
        }
    int at = end;
    if (r[AT_SPINNING] > real(0)) {
        set_torque(w, r, at, 0);
        set_number(w, at++, KIND_SPIN, first, end);
    }
    for (int d = 1; r[AT_ROLLING] > real(0) && d < 3; ++d) {
        set_torque(w, r, at, d);
        set_number(w, at++, d, first, end);
    }
}

// Add the twist at one manifold due to unit wrenches at another manifold with a common body. Columns have six entries.
GPUSIM_FN void shared_response(const World& w, ReadLane from, ReadLane to, int columns, real* out) {
    for (int side = 0; side < 2; ++side)
        for (int other = 0; other < 2; ++other) {
            if (from[AT_MOVED + side] < real(0) || from[AT_MOVED + side] != to[AT_MOVED + other]) continue;
            if (is_hub_body(w, int(from[AT_MOVED + side]))) continue;
            for (int j = 0; j < columns; ++j) {
                real unit[6] = {}, moved[6], part[6];
                const real still[6] = {};
                unit[j] = real(1);
                side_motion(from, side, unit, moved);
                relative_motion(to, other ? still : moved, other ? moved : still, part);
                for (int k = 0; k < 6; ++k) out[6 * j + k] += part[k];
            }
        }
}
// out -= W^T E^-1 W for one pivot, with ``columns`` columns of W at the first manifold and ``rows`` at the second.
GPUSIM_FN void subtract_pivot(int block, int rows, const real* to, int columns, const real* from, const real* inverse,
                              real* out) {
    real scale[MAX_ROWS], to_row[MAX_ROWS], from_row[MAX_ROWS];
    read_row(block, inverse, scale);
    for (int j = 0; j < columns; ++j) {
        read_row(block, from + block * j, from_row);
        EACH_ROW(row, block) from_row[row] *= scale[row];
        for (int k = 0; k < 6; ++k) {
            if (k >= rows) continue;
            read_row(block, to + block * k, to_row);
            real sum = to_row[0] * from_row[0];
            EACH_ROW(row, block) if (row) sum += to_row[row] * from_row[row];
            out[6 * j + k] -= sum;
        }
    }
}
#if WHOLE_BLOCKS
// subtract_pivot for blocks of six rows. V is Three or Six.
template <class V> GPUSIM_FN void subtract_pivot_six(const real* to, int columns, const real* from,
                                                     const real* inverse, real* out) {
    V to_row[6];
    for (int row = 0; row < 6; ++row) to_row[row] = V::strided(to + row, 6);
    for (int j = 0; j < columns; ++j, from += 6, out += 6) {
        V sum = to_row[0] * (from[0] * inverse[0]);
        for (int row = 1; row < 6; ++row) sum = sum + to_row[row] * (from[row] * inverse[row]);
        for (int k = 0; k < V::COUNT; ++k) out[k] -= sum.get(k);
    }
}
#endif
// Add the effect of the joints: the sum over the pivots that are in both paths (indices of articulated manifolds).
GPUSIM_FN void subtract_common_path(const World& w, int from, int to, real* out) {
    const int block = w.block(), rows = w.path_columns()[to], columns = w.path_columns()[from];
    const int ends[2] = {w.path_count()[from], w.path_count()[to]};
    for (int i = 0, k = 0; i < ends[0] && k < ends[1];) {
        const int a = path_pivot_at(w, from, i), b = path_pivot_at(w, to, k);
        if (a == b) {
            const real *source = w.path_w() + path_at(w, from, i), *target = w.path_w() + path_at(w, to, k);
            const real* inverse = w.pivot_inverse() + path_rows(w, from)[i];
#if WHOLE_BLOCKS
            if (block == 6 && rows == 3) subtract_pivot_six<Three<real>>(target, columns, source, inverse, out);
            else if (block == 6) subtract_pivot_six<Six<real>>(target, columns, source, inverse, out);
            else
#endif
            subtract_pivot(block, rows, target, columns, source, inverse, out);
        }
        i += a <= b;
        k += b <= a;
    }
}
// Item: a pair of manifolds of an island. R is symmetric, so each manifold has pairs with itself and with the next half of
// the island, where the first manifold follows the last one.
GPUSIM_FN int pair_steps(const World& w) { return *w.island_largest() / 2 + 1; }
GPUSIM_FN int condensed_pairs(const World& w) { return condensed_size(w) * pair_steps(w); }
// Return the number of columns of a manifold. A point without torques has three columns.
GPUSIM_FN int columns_of(const World& w, int n) { return has_path(w, n) ? w.path_columns()[path_of(w, n)] : 6; }
GPUSIM_PHASE void condense_pair(const World& w, int item) {
    const int steps = pair_steps(w), n = item / steps, step = item % steps, island = w.condensed_island()[n];
    const int start = w.island_slot()[island], end = w.island_slot()[island + 1], size = end - start;
    // If the number of manifolds is even, two of them have the same opposite pair.
    if (2 * step > size || (2 * step == size && n + step >= end)) return;
    const int other = n + step < end ? n + step : n + step - size, from = max_(n, other), to = min_(n, other);
    const int first = w.condensed_start()[start];
    const ReadLane source = read_record(w, condensed_member(w, from)), target = read_record(w, condensed_member(w, to));
    const int columns = columns_of(w, from), rows = columns_of(w, to);
    real out[36];
    for (int j = 0; j < columns; ++j)
        for (int k = 0; k < 6; ++k) out[6 * j + k] = from == to ? real(source[AT_RESPONSE + 6 * k + j]) : real(0);
    if (from != to) {
        shared_response(w, source, target, columns, out);
        if (has_path(w, from) && has_path(w, to)) subtract_common_path(w, path_of(w, from), path_of(w, to), out);
    }
    for (int j = w.condensed_start()[from]; j < w.condensed_start()[from + 1]; ++j) {
        const real* push = w.condensed_wrench() + 6 * j;
        real moved[6];
        for (int k = 0; k < rows; ++k) {
            moved[k] = out[k] * push[0];
            for (int c = 1; c < columns; ++c) moved[k] += out[6 * c + k] * push[c];
        }
        for (int i = from == to ? j : w.condensed_start()[to]; i < w.condensed_start()[to + 1]; ++i) {
            const real* wrench = w.condensed_wrench() + 6 * i;
            real sum = wrench[0] * moved[0];
            for (int k = 1; k < rows; ++k) sum += wrench[k] * moved[k];
            column_at(w, j)[i - first] = column_at(w, i)[j - first] = sum;
        }
    }
}
GPUSIM_PHASE void keep_condensed(const World& w, int) { *w.condensed_fits() = 1; }
