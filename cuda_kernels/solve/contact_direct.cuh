// Contacts on articulated bodies with the direct solver (equations: gpusim/reference/solve/contact_direct.py). A *path*
// contains the pivots from the joints of both bodies to the root of the elimination tree. A manifold affects only the
// pivots on its path. invert_pivot splits D = K E K^T, so Y^T D^-1 Y = W^T E^-1 W with W = K^-1 Y. The kernels store W
// instead of Y and Z. Between the forward and the backward solve, ``delta`` contains K^T x.
#pragma once
#include "../contacts/contact_solve.cuh"
#include "direct_solve.cuh"

// A path has three or six columns. A GPU uses three threads for the columns, and a CPU uses one thread.
#if !WHOLE_BLOCKS
#define PATH_ITEMS 3
#else
#define PATH_ITEMS 1
#endif
GPUSIM_FN int articulated_member(const World& w, int i) { return list_member(w, w.max_colors() + 1, i); }
// Return the constraint of the k-th pivot on the path of manifold n.
GPUSIM_FN int path_pivot_at(const World& w, int n, int k) { return w.path_pivot()[w.path_start()[n] + k]; }
GPUSIM_FN int path_constraint(const World& w, int n, int k) { return w.pivot()[path_pivot_at(w, n, k)]; }
GPUSIM_FN int path_at(const World& w, int n, int k) {
    return (6 * w.path_start()[n] + w.path_columns()[n] * k) * w.block();
}

// Return the first row of the constraint of each pivot on the path of manifold n.
GPUSIM_FN const int* path_rows(const World& w, int n) { return w.path_row() + w.path_start()[n]; }

// Merge the paths of both bodies in elimination order. Call ``put`` with the index of each pivot on the path and the
// pivot, and return the number of pivots.
template <class F> GPUSIM_FN int merge_pivots(const World& w, int m, F put) {
    const int none = 0x7fffffff;
    int next[2], end[2], count = 0;
    for (int side = 0; side < 2; ++side) {
        const int body = side_body(w, m, side);
        next[side] = w.body_path_start()[body];
        end[side] = w.body_path_start()[body + 1];
    }
    for (; next[0] < end[0] || next[1] < end[1]; ++count) {
        const int a = next[0] < end[0] ? w.body_path()[next[0]] : none, b = next[1] < end[1] ? w.body_path()[next[1]] : none;
        const int first = min_(a, b);
        put(count, first);
        next[0] += a == first;
        next[1] += b == first;
    }
    return count;
}
// Return the number of columns of a path. A single point is at the center of the manifold, so rotations have no effect.
// When this code runs, the torques of a tire are not yet computed.
template <class R> GPUSIM_FN int path_width(R r) {
    return r[AT_COUNT] > real(1) || r[AT_LAW] == real(LAW_TIRE) || has_manifold_friction(r) ? 6 : 3;
}
// Count the pivots of a path. The paths are packed, so the capacity can be below the maximum length of all paths.
GPUSIM_PHASE void count_path(const World& w, int n) {
    if (n >= articulated_size(w)) return;
    const int m = articulated_member(w, n);
    w.path_count()[n] = merge_pivots(w, m, [](int, int) {});
    w.path_columns()[n] = path_width(read_record(w, m));
}
// Call ``call`` with the root of the elimination tree of each body with joints that is in contact.
template <class F> GPUSIM_FN void each_touched_root(const World& w, F call) {
    for (int n = 0; n < articulated_size(w); ++n)
        for (int side = 0; side < 2; ++side) {
            const int body = side_body(w, articulated_member(w, n), side), end = w.body_path_start()[body + 1];
            if (end > w.body_path_start()[body]) call(w.body_path()[end - 1]);
        }
}
GPUSIM_FN int count_touched_trees(const World& w) {
    if (w.elimination_trees() < 2) return articulated_size(w) > 0;
    int trees = 0, *touched = w.tree_touched();
    each_touched_root(w, [&](int root) { touched[root] = 0; });
    each_touched_root(w, [&](int root) {
        trees += !touched[root];
        touched[root] = 1;
    });
    return trees;
}
GPUSIM_PHASE void start_paths(const World& w, int) {
    for (int n = 0, end = 0; n < articulated_size(w); ++n) {
        w.path_start()[n] = end;
        end += w.path_count()[n];
    }
    *w.all_in_contact() = count_touched_trees(w) == w.elimination_trees();
}
GPUSIM_PHASE void merge_path(const World& w, int n) {
    if (n >= articulated_size(w)) return;
    const int start = w.path_start()[n];
    merge_pivots(w, articulated_member(w, n), [&](int k, int pivot) {
        w.path_pivot()[start + k] = pivot;
        w.path_row()[start + k] = w.pivot()[pivot] * w.block();
    });
}
// Return whether a motion of a body without its joints moves constraint c by slot s. The motion of a hub moves only the
// constraint that represents the hub.
GPUSIM_FN bool follows_body(const World& w, int c, int s, int body) {
    if (!w.dynamic()[body]) return false;
    if (is_hub_body(w, body)) return w.body_hub()[body] == c && s == 0;
    return w.constraint_bodies()[c * w.slots() + s] == body;
}
// Return the sides of manifold m that are hubs, as bits.
GPUSIM_FN int hub_sides(const World& w, int m) {
    return int(is_hub_body(w, side_body(w, m, 0))) | int(is_hub_body(w, side_body(w, m, 1))) << 1;
}
// Update the velocities of the bodies of manifold m, except for hubs. ``delta`` contains the velocity change of hubs.
GPUSIM_FN void move_joined(const World& w, int m, Lane r, const real* wrench, real* velocity) {
    const int hubs = hub_sides(w, m);
    for (int side = 0; side < 2; ++side) {
        real moved[6];
        if (hubs >> side & 1) continue;
        side_motion(r, side, wrench, moved);
        add_twist(r, side, moved, velocity);
    }
}
// Compute one column of S J M^-1 C^T for constraint c. ``motion`` is the motion of both sides due to a unit wrench.
GPUSIM_FN void joint_rows(const World& w, int m, int c, const real* motion, real* sum) {
    const int n = w.block();
    real scale[MAX_ROWS];
    EACH_ROW(row, n) sum[row] = real(0);
    for (int s = 0; s < w.constraint_slots()[c]; ++s)
        for (int side = 0; side < 2; ++side) {
            const int body = side_body(w, m, side);
            if (!follows_body(w, c, s, body)) continue;
            EACH_ROW(row, n) sum[row] += dot6(jacobian_row(w, c * n, s) + 6 * row, motion + 6 * side);
        }
    read_row(n, w.scale() + c * n, scale);
    EACH_ROW(row, n) sum[row] *= scale[row];
}
// Return the product of a row of n numbers and a vector in registers.
GPUSIM_FN real row_times(int n, const real* row, const real* x) {
    real numbers[MAX_ROWS];
    read_row(n, row, numbers);
    real sum = numbers[0] * x[0];
    EACH_ROW(i, n) if (i) sum += numbers[i] * x[i];
    return sum;
}
// Compute y = K^-1 y for a column in registers. ``k`` contains the rows of K^T.
GPUSIM_FN void divide_column(int n, const real* k, real* y) {
    EACH_ROW(row, n) {
        real k_row[MAX_ROWS];
        read_row(n, k + n * row, k_row);
        EACH_ROW(m, n) if (m > row) y[m] -= k_row[m] * y[row];
    }
}
// Store a row of the path only if a later update needs the row. The row of the next pivot stays in registers.
GPUSIM_FN void solve_column(const World& w, int m, int n, int column) {
    const int count = w.path_count()[n], block = w.block(), square = block * block, step = block * w.path_columns()[n];
    const ReadLane r = read_record(w, m);
    real wrench[6], motion[12], y[MAX_ROWS], next[MAX_ROWS], *path_w = w.path_w() + path_at(w, n, 0) + block * column;
    for (int k = 0; k < 6; ++k) wrench[k] = k == column ? real(1) : real(0);
    for (int side = 0; side < 2; ++side) side_motion(r, side, wrench, motion + 6 * side);
    bool has_next = false;
    for (int k = 0, stored = 0; k < count; ++k, stored = max_(stored, k)) {
        if (has_next) {
            EACH_ROW(row, block) y[row] = next[row];
        } else if (k < stored) {
            read_row(block, path_w + step * k, y);
        } else {
            joint_rows(w, m, path_constraint(w, n, k), motion, y);
        }
        has_next = false;
        const int at = path_pivot_at(w, n, k);
        int target = k;
        for (int edge = w.pivot_edge()[at]; edge < w.pivot_edge()[at + 1]; ++edge) {
            while (path_constraint(w, n, target) != w.edge_row()[edge]) ++target;
            const real* l = w.lower() + edge * square;
            real values[MAX_ROWS];
            if (target < stored) read_row(block, path_w + step * target, values);
            for (int i = max_(stored, k + 1 + has_next); i <= target; ++i) {
                joint_rows(w, m, path_constraint(w, n, i), motion, values);
                if (i < target) write_row(block, values, path_w + step * i);
            }
            EACH_ROW(row, block) values[row] -= row_times(block, l + block * row, y);
            if (target == k + 1) {
                has_next = true;
                EACH_ROW(row, block) next[row] = values[row];
            } else {
                write_row(block, values, path_w + step * target);
                stored = max_(stored, target + 1);
            }
        }
        divide_column(block, w.factor_blocks() + w.pivot()[at] * square, y);
        write_row(block, y, path_w + step * k);
    }
}
#if WHOLE_BLOCKS
// Compute all columns of S J M^-1 C^T for constraint c with a block of six rows. V is Three or Six.
template <class V> GPUSIM_FN void joint_rows_six(const World& w, int m, int c, const real* motion, real* out) {
    V sum[6];
    for (int row = 0; row < 6; ++row) sum[row] = V::zero();
    for (int s = 0; s < w.constraint_slots()[c]; ++s)
        for (int side = 0; side < 2; ++side) {
            const int body = side_body(w, m, side);
            if (!follows_body(w, c, s, body)) continue;
            V column[6];
            for (int k = 0; k < 6; ++k) column[k] = V::strided(motion + 36 * side + k, 6);
            const real* rows = jacobian_row(w, c * 6, s);
            for (int row = 0; row < 6; ++row) sum[row] = sum[row] + columns_times(column, rows + 6 * row);
        }
    for (int row = 0; row < 6; ++row) (sum[row] * w.scale()[c * 6 + row]).store(out + V::WIDTH * row);
}
// The loop replaces Y by W, pivot by pivot.
template <class V> GPUSIM_FN void solve_six(const World& w, int m, int n) {
    constexpr int COLUMNS = V::COUNT, STEP = 6 * V::WIDTH;
    const int count = w.path_count()[n];
    const ReadLane r = read_record(w, m);
    real motion[72], *first = w.path_w() + path_at(w, n, 0);
    for (int j = 0; j < COLUMNS; ++j) {
        real wrench[6] = {};
        wrench[j] = real(1);
        for (int side = 0; side < 2; ++side) side_motion(r, side, wrench, motion + 36 * side + 6 * j);
    }
    for (int k = 0; k < count; ++k) joint_rows_six<V>(w, m, path_constraint(w, n, k), motion, first + STEP * k);
    for (int k = 0; k < count; ++k) {
        const int at = path_pivot_at(w, n, k);
        V y[6];
        for (int row = 0; row < 6; ++row) y[row] = V::load(first + STEP * k + V::WIDTH * row);
        int target = k;
        for (int edge = w.pivot_edge()[at]; edge < w.pivot_edge()[at + 1]; ++edge) {
            while (path_constraint(w, n, target) != w.edge_row()[edge]) ++target;
            const real* l = w.lower() + edge * 36;
            for (real* out = first + STEP * target; out < first + STEP * (target + 1); out += V::WIDTH, l += 6)
                (V::load(out) - columns_times(y, l)).store(out);
        }
        const real* split = w.factor_blocks() + w.pivot()[at] * 36;
        for (int row = 0; row < 6; ++row)
            for (int c = row + 1; c < 6; ++c) y[c] = y[c] - y[row] * split[6 * row + c];
        for (int j = 0; j < COLUMNS; ++j)
            for (int row = 0; row < 6; ++row) first[6 * (COLUMNS * k + j) + row] = y[row].get(j);
    }
}
#endif
// Item: some columns of an articulated manifold on a GPU, all columns on a CPU. W = K^-1 L^-1 S J M^-1 C^T.
GPUSIM_FN int path_items(const World& w) { return articulated_size(w) * PATH_ITEMS; }
GPUSIM_PHASE void solve_path(const World& w, int item) {
    if (item >= path_items(w)) return;
    const int n = item / PATH_ITEMS, m = articulated_member(w, n), columns = w.path_columns()[n];
#if WHOLE_BLOCKS
    if (w.block() == 6) return columns == 3 ? solve_six<Three<real>>(w, m, n) : solve_six<Six<real>>(w, m, n);
    for (int column = 0; column < columns; ++column) solve_column(w, m, n, column);
#else
    for (int column = item % PATH_ITEMS; column < columns; column += PATH_ITEMS) solve_column(w, m, n, column);
#endif
}
GPUSIM_FN real bounded_response(real free, real system) {
    return min_(free, max_(real(1.0 / POINT_FLOOR) * system, real(POINT_MIN / POINT_FLOOR) * free));
}
// Return the minimum eigenvalue of the response along the tangents.
GPUSIM_FN real min_tangent(Lane mass) {
    const real apart = mass[3] - mass[5], both = mass[3] + mass[5];
    return real(0.5) * (both - sqrt_(apart * apart + real(4) * mass[4] * mass[4]));
}
// If joints lock a point, add compliances to the point, because the response is only round-off. The compliance along
// the tangents prevents large friction impulses that cancel each other. Tires already have a compliance along the
// tangents.
GPUSIM_FN void add_floor(bool tire, Lane p, real free, real* floor) {
    Lane mass = p + AT_MASS;
    const real stiffest = min_(real(mass[0]), min_tangent(mass));
    floor[0] = max_(real(POINT_FLOOR) * free - mass[0], real(0));
    const real along = max_(real(POINT_FLOOR) * free - stiffest, real(0.5 * TANGENT_FLOOR) * (mass[3] + mass[5]));
    floor[1] = tire ? real(0) : along;
    mass[0] += floor[0];
    mass[3] += floor[1];
    mass[5] += floor[1];
}
#if WHOLE_BLOCKS
// Compute out -= W^T E^-1 W for three or six columns (V).
template <class V> GPUSIM_FN void take_path_six(const World& w, int n, real* out) {
    constexpr int COLUMNS = V::COUNT;
    V rows[COLUMNS];
    for (int i = 0; i < COLUMNS; ++i) rows[i] = V::load(out + 6 * i);
    for (int k = 0; k < w.path_count()[n]; ++k) {
        const real *path_w = w.path_w() + path_at(w, n, k), *inverse = w.pivot_inverse() + path_rows(w, n)[k];
        for (int row = 0; row < 6; ++row) {
            const V column = V::strided(path_w + row, 6) * inverse[row];
            for (int i = 0; i < COLUMNS; ++i) rows[i] = rows[i] - column * path_w[6 * i + row];
        }
    }
    for (int i = 0; i < COLUMNS; ++i)
        for (int j = 0; j < COLUMNS; ++j) out[6 * i + j] = rows[i].get(j);
}
#endif
// Compute out -= W^T E^-1 W for one or two rows of W.
template <int COLUMNS> GPUSIM_FN void take_path_rows(const World& w, int n, int k, int row, real* out) {
    const int block = w.block();
    const real* path_w = w.path_w() + path_at(w, n, k) + row;
    real y[COLUMNS][PAIRED_ROWS + 1], inverse[PAIRED_ROWS + 1];
    for (int i = 0; i < COLUMNS; ++i) read_numbers<PAIRED_ROWS + 1>(path_w + block * i, y[i]);
    read_numbers<PAIRED_ROWS + 1>(w.pivot_inverse() + path_rows(w, n)[k] + row, inverse);
    for (int r = 0; r <= PAIRED_ROWS; ++r)
        for (int j = 0; j < COLUMNS; ++j) {
            const real column = y[j][r] * inverse[r];
            for (int i = 0; i < COLUMNS; ++i) out[6 * i + j] -= column * y[i][r];
        }
}
template <int COLUMNS> GPUSIM_FN void take_path(const World& w, int n, real* out) {
    for (int k = 0; k < w.path_count()[n]; ++k)
        for (int row = 0; row < w.block(); row += PAIRED_ROWS + 1) take_path_rows<COLUMNS>(w, n, k, row, out);
}
// Compute the response with all joints, R = C M^-1 C^T - W^T E^-1 W, and the values that depend on R.
GPUSIM_PHASE void respond_path(const World& w, int n) {
    if (n >= articulated_size(w)) return;
    const int m = articulated_member(w, n), columns = w.path_columns()[n];
    Lane r = record(w, m);
    real free[4], out[36];
    free_response(w, false, r);
    point_masses(r);
    const real system = w.system_inverse_mass()[side_body(w, m, 0)] + w.system_inverse_mass()[side_body(w, m, 1)];
    for (int k = 0; k < w.pair_points()[m]; ++k) free[k] = bounded_response(point_record(r, k)[AT_MASS], system);
    if (hub_sides(w, m)) free_response(w, false, r, hub_sides(w, m));
    take_numbers<36>(r + AT_RESPONSE, out);
#if WHOLE_BLOCKS
    if (w.block() == 6) {
        if (columns == 3) take_path_six<Three<real>>(w, n, out);
        else take_path_six<Six<real>>(w, n, out);
    } else
#endif
    if (columns == 3) take_path<3>(w, n, out);
    else take_path<6>(w, n, out);
    put_numbers<36>(out, r + AT_RESPONSE);
    point_masses(r);
    for (int k = 0; k < w.pair_points()[m]; ++k) {
        point_record(r, k)[AT_PUSH_YIELD] = real(PUSH_YIELD_JOINED) * free[k];
        add_floor(r[AT_LAW] == real(LAW_TIRE), point_record(r, k), free[k], w.point_floor() + 2 * (4 * n + k));
        invert_point(r, point_record(r, k), true);
    }
}
GPUSIM_PHASE void keep_factor(const World& w, int) { *w.refactor() = 0; }
GPUSIM_PHASE void hold_bias(const World& w, int) { *w.hold_bias() = 1; }

// Compute W^T x, the relative twist of a manifold due to the pending correction of the joints, and wait for all threads.
// out[j][row] is the sum over the path for column j.
#if WHOLE_BLOCKS
template <int COLUMNS> GPUSIM_FN void sum_six(const World& w, int n, real* out) {
    const int count = w.path_count()[n], *row = path_rows(w, n);
    const real* path_w = w.path_w() + path_at(w, n, 0);
    Six<real> sum[COLUMNS];
    for (int j = 0; j < COLUMNS; ++j) sum[j] = Six<real>::zero();
    for (int k = 0; k < count; ++k, path_w += 6 * COLUMNS) {
        const Six<real> x = Six<real>::load(w.delta() + row[k]);
        for (int j = 0; j < COLUMNS; ++j) sum[j] = sum[j] + Six<real>::load(path_w + 6 * j) * x;
    }
    for (int j = 0; j < COLUMNS; ++j) sum[j].store(out + 6 * j);
}
#endif
constexpr int SUM_NUMBERS = PAIRED_ROWS + 1;
GPUSIM_FN void sum_path_rows(const World& w, int n, real* out) {
    const int block = w.block(), step = w.path_columns()[n] * block, *first = path_rows(w, n), *end = first + w.path_count()[n];
    const real *path_w = w.path_w() + path_at(w, n, 0), *delta = w.delta();
    GPUSIM_ROLLED
    GPUSIM_ITEMS(step / SUM_NUMBERS, w.tid, w.threads) {
        const int at = SUM_NUMBERS * i;
        const real *numbers = path_w + at, *change = delta + at % block;
        real sum[SUM_NUMBERS] = {}, x[SUM_NUMBERS], y[SUM_NUMBERS];
        for (const int* row = first; row < end; ++row, numbers += step) {
            read_numbers<SUM_NUMBERS>(change + *row, x);
            read_numbers<SUM_NUMBERS>(numbers, y);
            for (int r = 0; r < SUM_NUMBERS; ++r) sum[r] += y[r] * x[r];
        }
        write_numbers<SUM_NUMBERS>(sum, in_slab(out) + at);
    }
}
GPUSIM_PHASE void sum_path(const World& w, int n, real* out) {
#if WHOLE_BLOCKS
    if (w.block() == 6) {
        if (w.tid == 0) w.path_columns()[n] == 3 ? sum_six<3>(w, n, out) : sum_six<6>(w, n, out);
    } else
#endif
    sum_path_rows(w, n, out);
    w.sync();
}
struct Floors {
    const real* at;
    template <class N> MEMBER void add(int k, const N* impulse, N* u) const {
        for (int d = 0; d < 3; ++d) u[d] += in_slab(at)[2 * k + (d > 0)] * impulse[d];
    }
};
GPUSIM_FN void add_path_twist(const World& w, int n, const real* path_part, real* twist) {
    const int block = w.block(), columns = w.path_columns()[n];
    for (int j = 0; j < 6; ++j) {
        if (j >= columns) continue;
        real part[MAX_ROWS];
        read_row(block, path_part + block * j, part);
        real sum = part[0];
        EACH_ROW(row, block) if (row) sum += part[row];
        twist[j] += sum;
    }
}
// Solve the n-th articulated manifold, and update the velocities of its bodies.
GPUSIM_PHASE void sweep_articulated(const World& w, int m, int n) {
    Lane r = record(w, m);
    Sweep<real> s;
    start_sweep(r, w.twist(), s);
    add_path_twist(w, n, w.path_part(), s.twist);
    sweep_points(w, w.record_index()[m], r, Floors{w.point_floor() + 8 * n}, s);
    move_joined(w, m, r, s.wrench, w.twist());
    write_numbers<6>(s.wrench, w.path_wrench());
    record_max_change(w, w.record_index()[m], r, 1, s);
}
// Subtract the effect of the n-th manifold's wrench from the correction of the joints, x -= E^-1 W f, and wait for all
// threads.
#if WHOLE_BLOCKS
template <int COLUMNS> GPUSIM_FN void update_six(const World& w, int n, const real* wrench) {
    real f[COLUMNS];
    for (int j = 0; j < COLUMNS; ++j) f[j] = wrench[j];
    const int count = w.path_count()[n], *row = path_rows(w, n);
    const real* path_w = w.path_w() + path_at(w, n, 0);
    for (int k = 0; k < count; ++k, path_w += 6 * COLUMNS) {
        const int first = row[k];
        Six<real> sum = Six<real>::load(path_w) * f[0];
        for (int j = 1; j < COLUMNS; ++j) sum = sum + Six<real>::load(path_w + 6 * j) * f[j];
        (Six<real>::load(w.delta() + first) - sum * Six<real>::load(w.pivot_inverse() + first)).store(w.delta() + first);
    }
}
#endif
GPUSIM_FN void update_path_rows(const World& w, int n, const real* wrench) {
    const int block = w.block(), columns = w.path_columns()[n], *first = path_rows(w, n);
    const real *path_w = w.path_w() + path_at(w, n, 0), *inverse = w.pivot_inverse();
    real *delta = w.delta(), f[6];
    read_numbers<6>(in_slab(wrench), f);
    GPUSIM_ROLLED
    GPUSIM_ITEMS(w.path_count()[n] * block, w.tid, w.threads) {
        const int k = i / block, row = i % block, at = first[k] + row;
        const real* y = path_w + columns * block * k + row;
        real sum = y[0] * f[0];
        for (int j = 1; j < 3; ++j) sum += y[block * j] * f[j];
        for (int j = 3; columns == 6 && j < 6; ++j) sum += y[block * j] * f[j];
        delta[at] -= sum * inverse[at];
    }
}
GPUSIM_PHASE void update_path(const World& w, int n, const real* wrench) {
#if WHOLE_BLOCKS
    if (w.block() == 6) {
        if (w.tid == 0) w.path_columns()[n] == 3 ? update_six<3>(w, n, wrench) : update_six<6>(w, n, wrench);
    } else
#endif
    update_path_rows(w, n, wrench);
    w.sync();
}
GPUSIM_PHASE void warm_articulated(const World& w, int m) {
    Lane r = record(w, m);
    real wrench[6];
    warm_wrench(r, wrench);
    move_sides(r, wrench, w.twist());
}
// Save numbers for the guard. If ``back`` is true, restore the numbers.
GPUSIM_FN void guard_numbers(bool back, Lane numbers, int count, real* saved) {
    if (back) put(saved, count, numbers);
    else take(numbers, count, saved);
}
// Save or restore the values of a manifold that sweeps change (description/contact_record.py).
GPUSIM_PHASE void guard_pair(const World& w, int m) {
    if (m >= *w.pair_count() || !w.pair_points()[m]) return;
    Lane r = record(w, m);
    real* saved = w.kept_solved() + SOLVED_SIZE * m;
    const int action = *w.guard_action();
    const bool back = action == GUARD_RESTORE || action == GUARD_RELEASE;
    if (!back && action != GUARD_KEEP) return;
    guard_numbers(back, r + AT_TORQUE, 3, saved);
    guard_numbers(back, r + AT_SHEAR, 2, saved + 3);
    for (int k = 0; k < w.pair_points()[m]; ++k) {
        Lane p = point_record(r, k);
        guard_numbers(back, p + AT_IMPULSE, 3, saved + 5 + 6 * k);
        guard_numbers(back, p + AT_DELTA, 3, saved + 8 + 6 * k);
    }
}
