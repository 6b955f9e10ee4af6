// Contacts on articulated bodies with the direct solver: sweeps within the factor of the joint rows (equations:
// gpusim/reference/solve/contact_direct.py). Between forward and backward solve, a manifold affects only the joints on the
// path from its bodies' constraints to the root of the elimination tree. So a sweep of a manifold costs two thin
// products with that path.
#pragma once
#include "../contacts/contact_solve.cuh"
#include "direct_solve.cuh"

// A GPU thread works on one column of a path, a CPU thread on all six.
#if !WHOLE_BLOCKS
#define PATH_COLUMNS 1
#else
#define PATH_COLUMNS 6
#endif
GPUSIM_FN int articulated_member(const World& w, int i) { return list_member(w, w.max_colors() + 1, i); }
GPUSIM_FN int first_articulated(const World& w) { return w.color_first()[w.max_colors() + 1]; }
// Manifold n of the list: the k-th pivot of its path, rows of Y (block x 6) and of Z transposed (6 x block).
GPUSIM_FN int path_pivot_at(const World& w, int n, int k) { return w.path_pivot()[w.path_start()[n] + k]; }
GPUSIM_FN int path_at(const World& w, int n, int k) { return (w.path_start()[n] + k) * w.block() * 6; }
GPUSIM_FN const real* path_y_at(const World& w, int n, int k) { return w.path_y() + path_at(w, n, k); }
GPUSIM_FN const real* path_z_at(const World& w, int n, int k) { return w.path_z() + path_at(w, n, k); }

// Merge the pivots of both bodies' paths in elimination order, into ``out`` unless it is null. Return their number.
GPUSIM_FN int merge_pivots(const World& w, int m, int* out) {
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
        if (out) out[count] = first;
        next[0] += a == first;
        next[1] += b == first;
    }
    return count;
}
// Return the number of columns of a manifold's path. A single point without torques is at the middle, so rotations do
// not affect it. Torques of a tire are not known yet.
template <class R> GPUSIM_FN int path_width(R r) {
    return r[AT_COUNT] > real(1) || r[AT_LAW] == real(LAW_TIRE) || has_whole(r) ? 6 : 3;
}
// Paths are stored one after another, so that their capacity need not assume the longest path for every manifold.
GPUSIM_PHASE void count_path(const World& w, int n) {
    if (n >= articulated_size(w)) return;
    const int m = articulated_member(w, n);
    w.path_count()[n] = merge_pivots(w, m, nullptr);
    w.path_columns()[n] = path_width(read_record(w, m));
}
GPUSIM_PHASE void start_paths(const World& w, int) {
    for (int n = 0, end = 0; n < articulated_size(w); ++n) {
        w.path_start()[n] = end;
        end += w.path_count()[n];
    }
}
GPUSIM_PHASE void merge_path(const World& w, int n) {
    if (n < articulated_size(w)) merge_pivots(w, articulated_member(w, n), w.path_pivot() + w.path_start()[n]);
}
#if WHOLE_BLOCKS
// Compute rows S J M^-1 C^T of constraint c: the effect of unit wrenches about the middle, V: Six or Three at a time.
// ``motion``: of both sides, six numbers per column.
template <class V> GPUSIM_FN void joint_rows(const World& w, int m, int c, const real* motion, real* out) {
    const int n = w.block(), slots = w.slots();
    V sum[GPUSIM_MAX_BLOCK];
    for (int row = 0; row < n; ++row) sum[row] = V::zero();
    for (int s = 0; s < w.constraint_slots()[c]; ++s)
        for (int side = 0; side < 2; ++side) {
            const int body = side_body(w, m, side);
            if (!w.dynamic()[body] || w.constraint_bodies()[c * slots + s] != body) continue;
            V column[6];
            for (int k = 0; k < 6; ++k) column[k] = V::strided(motion + 36 * side + k, 6);
            const real* own = jacobian_row(w, c * n, s);
            for (int row = 0; row < n; ++row, own += 6) {
                V part = column[0] * own[0];
                for (int k = 1; k < 6; ++k) part = part + column[k] * own[k];
                sum[row] = sum[row] + part;
            }
        }
    for (int row = 0; row < n; ++row) (sum[row] * w.scale()[c * n + row]).store(out + 6 * row);
}
// out -= L_e y for the constraint that edge e leads to.
template <class V> GPUSIM_FN void path_step(int n, const real* l, const real* y, real* out) {
    V rows[GPUSIM_MAX_BLOCK];
    for (int m = 0; m < n; ++m) rows[m] = V::load(y + 6 * m);
    for (int row = 0; row < n; ++row, l += n) {
        V sum = rows[0] * l[0];
        for (int m = 1; m < n; ++m) sum = sum + rows[m] * l[m];
        (V::load(out + 6 * row) - sum).store(out + 6 * row);
    }
}
// Compute ``columns`` columns of Z = D^-1 Y.
GPUSIM_FN void path_divide(int n, const real* d, int columns, const real* y, real* z) {
    if (n == 6) {
        Six<real> column[6];
        for (int m = 0; m < 6; ++m) column[m] = Six<real>::strided(d + m, 6);
        for (int j = 0; j < columns; ++j) {
            Six<real> sum = column[0] * y[j];
            for (int m = 1; m < 6; ++m) sum = sum + column[m] * y[6 * m + j];
            sum.store(z + 6 * j);
        }
    } else {
        for (int row = 0; row < n; ++row, d += n)
            for (int j = 0; j < columns; ++j) {
                real sum = d[0] * y[j];
                for (int m = 1; m < n; ++m) sum += d[m] * y[6 * m + j];
                z[n * j + row] = sum;
            }
    }
    for (int k = n * columns; k < 6 * n; ++k) z[k] = real(0);
}
template <class V> GPUSIM_FN void solve_columns(const World& w, int m, int n, int columns) {
    const int count = w.path_count()[n], block = w.block(), square = block * block;
    const ReadLane r = read_record(w, m);
    real motion[72];
    for (int j = 0; j < columns; ++j) {
        real wrench[6] = {};
        wrench[j] = real(1);
        for (int side = 0; side < 2; ++side) side_motion(r, side, wrench, motion + 36 * side + 6 * j);
    }
    for (int k = 0; k < count; ++k) joint_rows<V>(w, m, w.pivot()[path_pivot_at(w, n, k)], motion, w.path_y() + path_at(w, n, k));
    for (int k = 0; k < count; ++k) {
        const int at = path_pivot_at(w, n, k);
        const real* y = path_y_at(w, n, k);
        int later = k;
        for (int edge = w.pivot_edge()[at]; edge < w.pivot_edge()[at + 1]; ++edge) {
            while (w.pivot()[path_pivot_at(w, n, later)] != w.edge_row()[edge]) ++later;
            const real* l = w.lower() + edge * square;
            real* out = w.path_y() + path_at(w, n, later);
            if (block == 6) path_step<V>(6, l, y, out);
            else path_step<V>(block, l, y, out);
        }
        path_divide(block, w.inverse() + w.pivot()[at] * square, columns, y, w.path_z() + path_at(w, n, k));
    }
}
#else
// Compute one column of these rows.
GPUSIM_FN void joint_rows(const World& w, int m, int c, const real* motion, real* out) {
    const int n = w.block(), slots = w.slots();
    real sum[MOST_ROWS] = {}, scale[MOST_ROWS];
    for (int s = 0; s < w.constraint_slots()[c]; ++s)
        for (int side = 0; side < 2; ++side) {
            const int body = side_body(w, m, side);
            if (!w.dynamic()[body] || w.constraint_bodies()[c * slots + s] != body) continue;
            EACH_ROW(row, n) sum[row] += dot6(jacobian_row(w, c * n, s) + 6 * row, motion + 6 * side);
        }
    read_row(n, w.scale() + c * n, scale);
    EACH_ROW(row, n) out[6 * row] = sum[row] * scale[row];
}
// Return the product of a row of n numbers with a vector in registers.
GPUSIM_FN real row_times(int n, const real* row, const real* x) {
    real sum = row[0] * x[0];
    EACH_ROW(i, n) if (i) sum += row[i] * x[i];
    return sum;
}
GPUSIM_FN void solve_column(const World& w, int m, int n, int column) {
    const int count = w.path_count()[n], block = w.block();
    const ReadLane r = read_record(w, m);
    if (column >= w.path_columns()[n]) {
        for (int k = 0; k < count; ++k)
            for (int row = 0; row < block; ++row) {
                w.path_y()[path_at(w, n, k) + 6 * row + column] = real(0);
                w.path_z()[path_at(w, n, k) + block * column + row] = real(0);
            }
        return;
    }
    real wrench[6], motion[12];
    for (int k = 0; k < 6; ++k) wrench[k] = k == column ? real(1) : real(0);
    for (int side = 0; side < 2; ++side) side_motion(r, side, wrench, motion + 6 * side);
    for (int k = 0; k < count; ++k) joint_rows(w, m, w.pivot()[path_pivot_at(w, n, k)], motion, w.path_y() + path_at(w, n, k) + column);
    for (int k = 0; k < count; ++k) {
        const int at = path_pivot_at(w, n, k);
        const real *from = path_y_at(w, n, k) + column, *d = w.inverse() + w.pivot()[at] * block * block;
        real y[MOST_ROWS];
        EACH_ROW(i, block) y[i] = from[6 * i];
        int later = k;
        for (int edge = w.pivot_edge()[at]; edge < w.pivot_edge()[at + 1]; ++edge) {
            while (w.pivot()[path_pivot_at(w, n, later)] != w.edge_row()[edge]) ++later;
            const real* l = w.lower() + edge * block * block;
            real* out = w.path_y() + path_at(w, n, later) + column;
            EACH_ROW(row, block) out[6 * row] -= row_times(block, l + block * row, y);
        }
        real z[MOST_ROWS];
        EACH_ROW(row, block) z[row] = row_times(block, d + block * row, y);
        write_row(block, z, w.path_z() + path_at(w, n, k) + block * column);
    }
}
#endif
// Item: a column of an articulated manifold, on a CPU a manifold. Y = L^-1 S J M^-1 C^T, Z = D^-1 Y.
GPUSIM_FN int path_items(const World& w) { return articulated_size(w) * (6 / PATH_COLUMNS); }
GPUSIM_PHASE void solve_path(const World& w, int item) {
    if (item >= path_items(w)) return;
    const int n = item / (6 / PATH_COLUMNS), m = articulated_member(w, n);
#if WHOLE_BLOCKS
    if (w.path_columns()[n] == 3) solve_columns<Three<real>>(w, m, n, 3);
    else solve_columns<Six<real>>(w, m, n, 6);
#else
    solve_column(w, m, n, item % 6);
#endif
}
// Return the response of a point without joints, as if no body were lighter than POINT_FLOOR of its system.
GPUSIM_FN real loaded(real free, real system) {
    return min_(free, max_(real(1.0 / POINT_FLOOR) * system, real(POINT_LEAST / POINT_FLOOR) * free));
}
// Return the least eigenvalue of the tangents' masses.
GPUSIM_FN real least_tangent(Lane mass) {
    const real apart = mass[3] - mass[5], both = mass[3] + mass[5];
    return real(0.5) * (both - sqrt_(apart * apart + real(4) * mass[4] * mass[4]));
}
// A point that joints lock has almost no response, and dividing by it would amplify round-off. A true compliance keeps
// its response above a small share of the free bodies'. Tangents always get a small compliance. Otherwise friction that
// several points bear redundantly would wind up to the cone. Tires are compliant themselves.
GPUSIM_FN void add_floor(bool tire, Lane p, real free, real* floor) {
    Lane mass = p + AT_MASS;
    const real stiffest = min_(real(mass[0]), least_tangent(mass));
    floor[0] = max_(real(POINT_FLOOR) * free - mass[0], real(0));
    const real along = max_(real(POINT_FLOOR) * free - stiffest, real(0.5 * TANGENT_FLOOR) * (mass[3] + mass[5]));
    floor[1] = tire ? real(0) : along;
    mass[0] += floor[0];
    mass[3] += floor[1];
    mass[5] += floor[1];
}
#if WHOLE_BLOCKS
// out -= Y^T Z.
GPUSIM_FN void take_path_six(const World& w, int n, real* out) {
    Six<real> rows[6];
    for (int i = 0; i < 6; ++i) rows[i] = Six<real>::load(out + 6 * i);
    for (int k = 0; k < w.path_count()[n]; ++k)
        for (int row = 0; row < 6; ++row) {
            const real* y = path_y_at(w, n, k) + 6 * row;
            const Six<real> column = Six<real>::strided(path_z_at(w, n, k) + row, 6);
            for (int i = 0; i < 6; ++i) rows[i] = rows[i] - column * y[i];
        }
    for (int i = 0; i < 6; ++i) rows[i].store(out + 6 * i);
}
#endif
// Subtract the products of one row of Y and Z, or of two if memory moves pairs.
GPUSIM_FN void take_path_rows(const World& w, int n, int k, int row, real* out) {
    const int block = w.block();
    const real *at = path_y_at(w, n, k) + 6 * row, *z = path_z_at(w, n, k) + row;
    real y[PAIRED_ROWS + 1][6], pair[PAIRED_ROWS + 1];
    for (int r = 0; r <= PAIRED_ROWS; ++r) read_numbers<6>(at + 6 * r, y[r]);
    for (int j = 0; j < 6; ++j) {
        read_numbers<PAIRED_ROWS + 1>(z + block * j, pair);
        for (int i = 0; i < 6; ++i)
            for (int r = 0; r <= PAIRED_ROWS; ++r) out[6 * i + j] -= y[r][i] * pair[r];
    }
}
// Compute the response of both bodies with all joints, R = C M^-1 C^T - Y^T Z, and the numbers that depend on it.
GPUSIM_PHASE void respond_path(const World& w, int n) {
    if (n >= articulated_size(w)) return;
    const int m = articulated_member(w, n), block = w.block();
    Lane r = record(w, m);
    real free[4], out[36];
    free_response(w, false, r);
    point_masses(r);
    const real system = w.system_inverse_mass()[side_body(w, m, 0)] + w.system_inverse_mass()[side_body(w, m, 1)];
    for (int k = 0; k < w.pair_points()[m]; ++k) free[k] = loaded(point_record(r, k)[AT_MASS], system);
    take_numbers<36>(r + AT_RESPONSE, out);
#if WHOLE_BLOCKS
    if (block == 6) {
        take_path_six(w, n, out);
    } else
#endif
    for (int k = 0; k < w.path_count()[n]; ++k)
        for (int row = 0; row < block; row += PAIRED_ROWS + 1) take_path_rows(w, n, k, row, out);
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

#if WHOLE_BLOCKS
template <class V> GPUSIM_FN void sum_columns(const World& w, int n, int block) {
    V sum[GPUSIM_MAX_BLOCK];
    for (int row = 0; row < block; ++row) sum[row] = V::zero();
    for (int k = 0; k < w.path_count()[n]; ++k) {
        const real *x = w.delta() + w.pivot()[path_pivot_at(w, n, k)] * block, *y = path_y_at(w, n, k);
        for (int row = 0; row < block; ++row) sum[row] = sum[row] + V::load(y + 6 * row) * x[row];
    }
    for (int row = 0; row < block; ++row) sum[row].store(w.path_part() + 6 * row);
}
#endif
// Compute the effect of the joints' pending correction on the relative twist of a manifold, Y^T x, row by row:
// path_part[row][j] is the sum over the path. ``delta`` holds x from the forward to the backward solve.
constexpr int SUM_NUMBERS = PAIRED + 1;
GPUSIM_PHASE void sum_path(const World& w, int n, int item) {
    const int block = w.block();
#if PATH_COLUMNS == 1
    real sum[SUM_NUMBERS] = {}, y[SUM_NUMBERS];
    const int at = SUM_NUMBERS * item;
    for (int k = 0; k < w.path_count()[n]; ++k) {
        const real x = w.delta()[w.pivot()[path_pivot_at(w, n, k)] * block + at / 6];
        read_numbers<SUM_NUMBERS>(path_y_at(w, n, k) + at, y);
        for (int i = 0; i < SUM_NUMBERS; ++i) sum[i] += x * y[i];
    }
    write_numbers<SUM_NUMBERS>(sum, w.path_part() + at);
#else
    if (w.path_columns()[n] == 3) {
        if (block == 6) return sum_columns<Three<real>>(w, n, 6);
        return sum_columns<Three<real>>(w, n, block);
    }
    if (block == 6) return sum_columns<Six<real>>(w, n, 6);
    sum_columns<Six<real>>(w, n, block);
#endif
}
GPUSIM_FN int sum_items(const World& w) { return PATH_COLUMNS == 1 ? 6 * w.block() / SUM_NUMBERS : 1; }
struct Floors {
    const real* at;
    template <class N> MEMBER void add(int k, const N* impulse, N* u) const {
        for (int d = 0; d < 3; ++d) u[d] += in_slab(at)[2 * k + (d > 0)] * impulse[d];
    }
};
// Add the sums of sum_path to a relative twist.
GPUSIM_FN void add_path_twist(const World& w, real* twist) {
    real joints[6], part[6];
    read_numbers<6>(w.path_part(), joints);
    for (int row = 1; row < w.block(); ++row) {
        read_numbers<6>(w.path_part() + 6 * row, part);
        for (int j = 0; j < 6; ++j) joints[j] += part[j];
    }
    for (int j = 0; j < 6; ++j) twist[j] += joints[j];
}
// Solve the n-th manifold for the velocities and the joints' pending correction, and move its bodies.
GPUSIM_PHASE void sweep_articulated(const World& w, int m, int n) {
    Lane r = record(w, m);
    Sweep<real> s;
    start_sweep(r, w.twist(), s);
    add_path_twist(w, s.twist);
    sweep_points(w, w.record_place()[m], r, Floors{w.point_floor() + 8 * n}, s);
    move_sides(r, s.wrench, w.twist());
    write_numbers<6>(s.wrench, w.path_wrench());
    end_manifolds(w, w.record_place()[m], r, 1, s);
}
// Add the n-th manifold's wrench to the joints' pending correction, x -= Z f. Item: rows of the path, on a CPU the path.
#if PATH_COLUMNS == 1
GPUSIM_FN int update_items(const World& w, int n) { return w.path_count()[n] * w.block(); }
GPUSIM_PHASE void update_path(const World& w, int n, int item) {
    const int block = w.block(), k = item / block, row = item % block;
    const real* z = path_z_at(w, n, k) + row;
    const int columns = w.path_columns()[n];
    real f[6];
    read_numbers<6>(w.path_wrench(), f);
    real sum = z[0] * f[0];
    for (int j = 1; j < 6; ++j) sum = j < columns ? sum + z[block * j] * f[j] : sum;
    w.delta()[w.pivot()[path_pivot_at(w, n, k)] * block + row] -= sum;
}
#else
GPUSIM_FN int update_items(const World&, int) { return 1; }
template <int COLUMNS> GPUSIM_FN void update_six(const World& w, int n) {
    real f[COLUMNS];
    for (int j = 0; j < COLUMNS; ++j) f[j] = w.path_wrench()[j];
    const int count = w.path_count()[n], *at = w.path_pivot() + w.path_start()[n];
    const real* z = path_z_at(w, n, 0);
    for (int k = 0; k < count; ++k, z += 36) {
        real* x = w.delta() + w.pivot()[at[k]] * 6;
        Six<real> sum = Six<real>::load(z) * f[0];
        for (int j = 1; j < COLUMNS; ++j) sum = sum + Six<real>::load(z + 6 * j) * f[j];
        (Six<real>::load(x) - sum).store(x);
    }
}
GPUSIM_PHASE void update_path(const World& w, int n, int) {
    const int block = w.block(), columns = w.path_columns()[n];
    if (block == 6) return columns == 3 ? update_six<3>(w, n) : update_six<6>(w, n);
    for (int k = 0; k < w.path_count()[n]; ++k) {
        const real *z = path_z_at(w, n, k), *f = w.path_wrench();
        real *x = w.delta() + w.pivot()[path_pivot_at(w, n, k)] * block, sum[GPUSIM_MAX_BLOCK];
        for (int row = 0; row < block; ++row) sum[row] = z[row] * f[0];
        for (int j = 1; j < columns; ++j)
            for (int row = 0; row < block; ++row) sum[row] += z[block * j + row] * f[j];
        for (int row = 0; row < block; ++row) x[row] -= sum[row];
    }
}
#endif
GPUSIM_PHASE void warm_articulated(const World& w, int m) {
    Lane r = record(w, m);
    real wrench[6];
    warm_wrench(r, wrench);
    move_sides(r, wrench, w.twist());
}
// Save numbers for the guard, or restore them if ``back``.
GPUSIM_FN void guard_numbers(bool back, Lane own, int count, real* kept) {
    if (back) put(kept, count, own);
    else take(own, count, kept);
}
// Save or restore what sweeps solve of a manifold (description/contact_record.py). The rest is constant between passes.
GPUSIM_PHASE void guard_pair(const World& w, int m) {
    if (m >= *w.pair_count() || !w.pair_points()[m]) return;
    Lane r = record(w, m);
    real* kept = w.kept_solved() + SOLVED_SIZE * m;
    const int action = *w.guard_action();
    const bool back = action == GUARD_RESTORE || action == GUARD_RELEASE;
    if (!back && action != GUARD_KEEP) return;
    guard_numbers(back, r + AT_TORQUE, 3, kept);
    guard_numbers(back, r + AT_SHEAR, 2, kept + 3);
    for (int k = 0; k < w.pair_points()[m]; ++k) {
        Lane p = point_record(r, k);
        guard_numbers(back, p + AT_IMPULSE, 3, kept + 5 + 6 * k);
        guard_numbers(back, p + AT_DELTA, 3, kept + 8 + 6 * k);
    }
}
