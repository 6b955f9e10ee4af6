// Block LDL^T factorization of A = J M^-1 J^T + gamma (gpusim/reference/joints/factor.py).
// gpusim/compiler/elimination.py lists the operations by level. In memory, the diagonal blocks come before the blocks
// of L.
#pragma once
#include "rows.cuh"

// Item of block products and row vectors: one row on a GPU, a whole block on a CPU.
GPUSIM_FN int row_items(const World& w, int blocks) { return WHOLE_BLOCKS ? blocks : blocks * w.block(); }
struct RowPart {
    int block, row, end;
};
GPUSIM_FN RowPart row_part(const World& w, int i) {
    const int n = w.block();
#if WHOLE_BLOCKS
    return {i, 0, n};
#else
    return {i / n, i % n, i % n + 1};
#endif
}

// Compute the blocks of J M^-1 J^T.
#if WHOLE_BLOCKS
template <int N> GPUSIM_FN void product_rows(const World& w, int block) {
    real* out = w.mass_blocks() + N * N * block;
    Row<real, N> total[N], column[6];
#pragma GCC unroll 6
    for (int r = 0; r < N; ++r) total[r] = Row<real, N>::zero();
    for (int k = w.product_start()[block]; k < w.product_start()[block + 1]; ++k) {
        const real* j = w.jacobian() + 6 * N * w.product_i()[k];
        load_columns<N, 6>(w.mass_jacobian() + 6 * N * w.product_j()[k], column);
#pragma GCC unroll 6
        for (int r = 0; r < N; ++r) {
            Row<real, N> sum = column[0] * j[6 * r];
#pragma GCC unroll 6
            for (int c = 1; c < 6; ++c) sum = sum + column[c] * j[6 * r + c];
            total[r] = total[r] + sum;
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < N; ++r) total[r].store(out + N * r);
}
#endif
GPUSIM_FN void product_row(const World& w, int block, int row) {
    const int n = w.block();
    real sum[MAX_ROWS] = {}, left[6];
    for (int k = w.product_start()[block]; k < w.product_start()[block + 1]; ++k) {
        const real* j = w.jacobian() + 6 * (w.product_i()[k] * n + row);
        const real* columns = w.mass_jacobian() + 6 * n * w.product_j()[k];
        read_numbers<6>(j, left);
        EACH_ROW(c, n) sum[c] += dot6(left, columns + 6 * c);
    }
    write_row(n, sum, w.mass_blocks() + (block * n + row) * n);
}
GPUSIM_PHASE void product_entry(const World& w, int i) {
    const RowPart at = row_part(w, i);
#if WHOLE_BLOCKS
    RETURN_BY_BLOCK(w.block(), product_rows<N>(w, i));
#endif
    for (int row = at.row; row < at.end; ++row) product_row(w, at.block, row);
}

// Set ``weak`` if a pivot is below ``min_pivot``. ``min_pivot`` is a fraction of the row's response to its own impulse. Models
// without loops pass a null pointer.
GPUSIM_FN void watch_pivot(real pivot, const real* min_pivot, int row, real* weak) {
    if (min_pivot) raise_where(mask(pivot < in_slab(min_pivot)[row]), in_slab(weak), real(1));
}
// Return the scaled diagonal. After the call, its memory contains the minimum pivot, for watch_pivot.
GPUSIM_FN real take_diagonal(const World& w, int row) {
    const real diagonal = w.scaled_diagonal()[row], scale = w.scale()[row];
    const real total = w.hubs() ? diagonal + hub_response(w, row) * scale * scale : diagonal;
    w.scaled_diagonal()[row] = real(WEAK_PIVOT) * real(w.heavy_share()[row]) * total;
    return diagonal;
}
// Memory for the parts of a pivot D = K E K^T: the upper part of K^T by rows, and E^-1. K is unit lower triangular.
// With null pointers, the code does not store the parts.
struct Split {
    real *upper, *inverse;
};
// Invert a positive definite matrix in place (Gauss-Jordan without pivoting). ``width`` is the distance between rows.
GPUSIM_SHARED void invert_block(
    real* matrix, int n, int width, const real* min_pivot = nullptr, real* weak = nullptr, Split split = {nullptr, nullptr}) {
    real* m = in_slab(matrix);
    for (int p = 0; p < n; ++p) {
        real* pivot = m + p * width;
        const real scale = real(1) / pivot[p];
        watch_pivot(pivot[p], min_pivot, p, weak);
        pivot[p] = real(1);
        for (int c = 0; c < n; ++c) pivot[c] = pivot[c] * scale;
        if (split.upper) {
            in_slab(split.inverse)[p] = scale;
            for (int c = p + 1; c < n; ++c) in_slab(split.upper)[n * p + c] = pivot[c];
        }
        for (int r = 0; r < n; ++r) {
            if (r == p) continue;
            real* row = m + r * width;
            const real factor = row[p];
            row[p] = real(0);
            for (int c = 0; c < n; ++c) row[c] = row[c] - factor * pivot[c];
        }
    }
}
#if WHOLE_BLOCKS
template <int N> GPUSIM_FN void invert_rows(const real* from, real* out, const real* min_pivot, real* weak, Split split) {
    Row<real, N> m[N];
#pragma GCC unroll 6
    for (int r = 0; r < N; ++r) m[r] = Row<real, N>::load(from + N * r);
#pragma GCC unroll 6
    for (int p = 0; p < N; ++p) {
        const Row<real, N> scale = Row<real, N>::every(real(1)) / m[p].all(p);
        if (min_pivot) watch_pivot(m[p].get(p), min_pivot, p, weak);
        m[p].set(p, real(1));
        m[p] = m[p] * scale;
        if (split.upper) {
            split.inverse[p] = scale.get(p);
            m[p].store(split.upper + N * p);
        }
#pragma GCC unroll 6
        for (int r = 0; r < N; ++r) {
            if (r == p) continue;
            const Row<real, N> factor = m[r].all(p);
            m[r].set(p, real(0));
            m[r] = m[r] - m[p] * factor;
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < N; ++r) m[r].store(out + N * r);
}
#endif

// The registers of a GPU thread are too small for larger blocks.
#define INVERT_IN_REGISTERS (GPUSIM_GPU && GPUSIM_MAX_BLOCK <= 6)
#if INVERT_IN_REGISTERS
// Write the inverse of a block to ``out``, with the same operations in registers.
GPUSIM_FN void invert_copy(const real* from, real* out, int n, const real* min_pivot, real* weak, Split split) {
    real m[MAX_ROWS][MAX_ROWS], inverse[MAX_ROWS];
    EACH_ROW(r, n) read_row(n, from + n * r, m[r]);
    EACH_ROW(p, n) {
        const real scale = inverse[p] = real(1) / m[p][p];
        watch_pivot(m[p][p], min_pivot, p, weak);
        m[p][p] = real(1);
        EACH_ROW(c, n) m[p][c] = m[p][c] * scale;
        if (split.upper) write_row(n, m[p], split.upper + n * p, p + 1);
        EACH_ROW(r, n) {
            if (r == p) continue;
            const real factor = m[r][p];
            m[r][p] = real(0);
            EACH_ROW(c, n) m[r][c] = m[r][c] - factor * m[p][c];
        }
    }
    EACH_ROW(r, n) write_row(n, m[r], out + n * r);
    if (split.upper) write_row(n, inverse, split.inverse);
}
#endif

// Compute the diagonal of A, and the row scale. Without the scale, the round-off of free rows (gamma = 1e30) would
// change other rows.
GPUSIM_PHASE void scale_row(const World& w, int row) {
    const int n = w.block();
    if (is_hub(w, row / n)) {  // scale_entry changes the sign
        const real mass = w.mass_blocks()[n * row + row % n];
        w.scaled_diagonal()[row] = choose(mass > real(0), mass, real(1));
        w.scale()[row] = real(1);
        return;
    }
    const real response = w.diagonal()[row];
    const real damping = (real(*w.factor_damping()) + *w.softening()) * real(w.heavy_share()[row]);
    real total = response * (real(1.0 + REGULARIZATION) + damping) + w.gamma()[row];
    total = choose(total > real(0), total, real(1));
    // If the bodies of a row cannot move, the diagonal contains only the compliance.
    const real scale = w.axes() ? sqrt_(choose(response > real(0), response / total, real(1))) : real(1);
    w.scale()[row] = scale;
    w.scaled_diagonal()[row] = (total - hub_response(w, row)) * scale * scale;
    w.factored_gamma()[row] = w.gamma()[row];
}
#if WHOLE_BLOCKS
template <int N> GPUSIM_FN void scale_rows(const World& w, int block, bool diagonal, const real* law) {
    const int rows = w.block_row()[block] * N, columns = w.block_column()[block] * N;
    const real *from = w.mass_blocks() + block * N * N, *row_scale = w.scale() + rows, *scale = w.scale() + columns;
    real* out = w.factor_blocks() + block * N * N;
    const Row<real, N> column_scale = Row<real, N>::load(scale);
#pragma GCC unroll 6
    for (int row = 0; row < N; ++row) {
        (Row<real, N>::load(from + N * row) * row_scale[row] * column_scale).store(out + N * row);
        if (diagonal) out[(N + 1) * row] = take_diagonal(w, rows + row);
    }
    if (diagonal && is_hub(w, block))
        for (int k = 0; k < N * N; ++k) out[k] = -out[k];
    if (!law) return;
    for (int row = 0; row < N; ++row)
        for (int c = 0; c < N; ++c)
            if (c != row) out[N * row + c] = (from[N * row + c] + law[N * row + c]) * row_scale[row] * scale[c];
}
#endif
GPUSIM_PHASE void scale_entry(const World& w, int i) {
    const RowPart at = row_part(w, i);
    const int n = w.block(), rows = w.block_row()[at.block] * n, columns = w.block_column()[at.block] * n;
    const bool diagonal = at.block < w.constraints();
    const int coupled = diagonal ? coupled_number(w, at.block) : -1;
    const real *scale = w.scale() + columns, *law = coupled < 0 ? nullptr : coupled_block(w, coupled);
#if WHOLE_BLOCKS
    RETURN_BY_BLOCK(n, scale_rows<N>(w, at.block, diagonal, law));
#endif
    for (int row = at.row; row < at.end; ++row) {
        const real row_scale = w.scale()[rows + row], diagonal_value = diagonal ? take_diagonal(w, rows + row) : real(0);
        real number[MAX_ROWS], column_scale[MAX_ROWS];
        read_row(n, w.mass_blocks() + (at.block * n + row) * n, number);
        read_row(n, scale, column_scale);
        EACH_ROW(c, n) {
            number[c] = (law ? number[c] + law[row * n + c] : number[c]) * row_scale * column_scale[c];
            if (diagonal && c == row) number[c] = diagonal_value;
            if (diagonal && is_hub(w, at.block)) number[c] = -number[c];
        }
        write_row(n, number, w.factor_blocks() + (at.block * n + row) * n);
    }
}

// Operations of a level: pivots, columns, updates. With contacts, the parts of a pivot (see Split) replace the pivot.
GPUSIM_PHASE void invert_pivot(const World& w, int level, int i) {
    const int n = w.block(), pivot = w.pivot()[w.level_pivot()[level] + i];
    real *out = w.inverse() + pivot * n * n, *from = w.factor_blocks() + pivot * n * n;
    const Split split = w.direction_rows() ? Split{from, w.pivot_inverse() + pivot * n} : Split{nullptr, nullptr};
    const real* min_pivot = w.constraint_may_depend()[pivot] ? w.scaled_diagonal() + pivot * n : nullptr;
#if WHOLE_BLOCKS
    RETURN_BY_BLOCK(n, invert_rows<N>(from, out, min_pivot, w.weak(), split));
#endif
#if INVERT_IN_REGISTERS
    invert_copy(from, out, n, min_pivot, w.weak(), split);
#else
    for (int k = 0; k < n * n; ++k) out[k] = from[k];
    invert_block(out, n, n, min_pivot, w.weak(), split);
#endif
}
#if WHOLE_BLOCKS
template <int N> GPUSIM_FN void divide_rows(const real* a, const real* d, real* out) {
    Row<real, N> by[N];
#pragma GCC unroll 6
    for (int k = 0; k < N; ++k) by[k] = Row<real, N>::load(d + N * k);
#pragma GCC unroll 6
    for (int row = 0; row < N; ++row) {
        Row<real, N> sum = Row<real, N>::zero();
#pragma GCC unroll 6
        for (int k = 0; k < N; ++k) sum = sum + by[k] * a[N * row + k];
        sum.store(out + N * row);
    }
}
// Compute out -= L A^T for all updates of a target.
template <int N> GPUSIM_FN void update_rows(const World& w, int target, real* out) {
    Row<real, N> result[N], column[N];
#pragma GCC unroll 6
    for (int row = 0; row < N; ++row) result[row] = Row<real, N>::load(out + N * row);
    for (int k = w.update_start()[target]; k < w.update_start()[target + 1]; ++k) {
        const real* l = w.lower() + w.update_left()[k] * N * N;
        load_columns<N, N>(w.factor_blocks() + w.edge_block()[w.update_right()[k]] * N * N, column);
#pragma GCC unroll 6
        for (int row = 0; row < N; ++row) {
            Row<real, N> sum = Row<real, N>::zero();
#pragma GCC unroll 6
            for (int m = 0; m < N; ++m) sum = sum + column[m] * l[N * row + m];
            result[row] = result[row] - sum;
        }
    }
#pragma GCC unroll 6
    for (int row = 0; row < N; ++row) result[row].store(out + N * row);
}
#endif
GPUSIM_PHASE void divide_entry(const World& w, int level, int i) {
    const RowPart at = row_part(w, i);
    const int n = w.block(), square = n * n, edge = w.level_edge()[level] + at.block;
    const real *a = w.factor_blocks() + w.edge_block()[edge] * square, *d = w.inverse() + w.edge_pivot()[edge] * square;
    real* out = w.lower() + edge * square;
#if WHOLE_BLOCKS
    RETURN_BY_BLOCK(n, divide_rows<N>(a, d, out));
#endif
    for (int row = at.row; row < at.end; ++row) {
        real sum[MAX_ROWS] = {}, left[MAX_ROWS], by[MAX_ROWS];
        read_row(n, a + row * n, left);
        EACH_ROW(k, n) {
            read_row(n, d + k * n, by);
            EACH_ROW(c, n) sum[c] += left[k] * by[c];
        }
        write_row(n, sum, out + row * n);
    }
}
// Compute one row of the product L A^T.
GPUSIM_FN void update_row(const World& w, int target, int row, real* out) {
    const int n = w.block(), square = n * n;
    real result[MAX_ROWS], left[MAX_ROWS], right[MAX_ROWS];
    read_row(n, out, result);
    for (int k = w.update_start()[target]; k < w.update_start()[target + 1]; ++k) {
        const real* l = w.lower() + w.update_left()[k] * square + row * n;
        const real* a = w.factor_blocks() + w.edge_block()[w.update_right()[k]] * square;
        read_row(n, l, left);
        EACH_ROW(c, n) {
            real sum = real(0);
            read_row(n, a + c * n, right);
            EACH_ROW(m, n) sum += left[m] * right[m];
            result[c] = result[c] - sum;
        }
    }
    write_row(n, result, out);
}
GPUSIM_PHASE void update_entry(const World& w, int level, int i) {
    const RowPart at = row_part(w, i);
    const int n = w.block(), square = n * n, target = w.level_target()[level] + at.block;
    real* out = w.factor_blocks() + w.target_block()[target] * square;
#if WHOLE_BLOCKS
    RETURN_BY_BLOCK(n, update_rows<N>(w, target, out));
#endif
    for (int row = at.row; row < at.end; ++row) update_row(w, target, row, out + row * n);
}

// Compute x = K^T x for a block, or x = K^-T x.
#if WHOLE_BLOCKS
template <int N> GPUSIM_FN void split_block(const real* k, real* x) {
#pragma GCC unroll 6
    for (int row = 0; row < N; ++row)
#pragma GCC unroll 6
        for (int c = row + 1; c < N; ++c) x[row] += k[N * row + c] * x[c];
}
template <int N> GPUSIM_FN void join_block(const real* k, real* x) {
#pragma GCC unroll 6
    for (int row = N; row-- > 0;)
#pragma GCC unroll 6
        for (int c = row + 1; c < N; ++c) x[row] -= k[N * row + c] * x[c];
}
#endif
GPUSIM_PHASE void split_change(const World& w, int block) {
    const int n = w.block();
    const real* k = w.factor_blocks() + block * n * n;
#if WHOLE_BLOCKS
    RETURN_BY_BLOCK(n, split_block<N>(k, w.delta() + block * n));
#endif
    real x[MAX_ROWS], k_row[MAX_ROWS];
    read_row(n, w.delta() + block * n, x);
    EACH_ROW(row, n) {
        read_row(n, k + n * row, k_row);
        EACH_ROW(c, n) if (c > row) x[row] += k_row[c] * x[c];
    }
    write_row(n, x, w.delta() + block * n);
}
GPUSIM_PHASE void join_change(const World& w, int block) {
    const int n = w.block();
    const real* k = w.factor_blocks() + block * n * n;
#if WHOLE_BLOCKS
    RETURN_BY_BLOCK(n, join_block<N>(k, w.delta() + block * n));
#endif
    real x[MAX_ROWS], k_row[MAX_ROWS];
    read_row(n, w.delta() + block * n, x);
    EACH_ROW_BACK(row, n) {
        read_row(n, k + n * row, k_row);
        EACH_ROW(c, n) if (c > row) x[row] -= k_row[c] * x[c];
    }
    write_row(n, x, w.delta() + block * n);
}
GPUSIM_FN int level_pivots(const World& w, int level) { return w.level_pivot()[level + 1] - w.level_pivot()[level]; }
GPUSIM_FN int level_edges(const World& w, int level) { return w.level_edge()[level + 1] - w.level_edge()[level]; }
GPUSIM_FN int level_targets(const World& w, int level) { return w.level_target()[level + 1] - w.level_target()[level]; }
GPUSIM_FN int level_rows(const World& w, int level) { return w.level_forward()[level + 1] - w.level_forward()[level]; }

// Forward and backward solves work on ``rhs``, and write the result to ``delta``.
GPUSIM_PHASE void scale_right(const World& w, int row) { w.rhs()[row] = w.rhs()[row] * w.scale()[row]; }
// Return row ``row`` of M x, or of M^T x if ``transposed``.
GPUSIM_FN real row_times_slab(int n, const real* m, int row, bool transposed, const real* x) {
    real left[MAX_ROWS], right[MAX_ROWS], sum = real(0);
    if (!transposed) read_row(n, m + row * n, left);
    else EACH_ROW(k, n) left[k] = m[row + k * n];
    read_row(n, x, right);
    EACH_ROW(k, n) sum += left[k] * right[k];
    return sum;
}
#if WHOLE_BLOCKS
// Compute M x for a block, or M^T x if ``transposed``.
template <int N> GPUSIM_FN Row<real, N> block_times(const real* m, bool transposed, const real* x) {
    Row<real, N> column[N], sum = Row<real, N>::zero();
    if (!transposed) load_columns<N, N>(m, column);
#pragma GCC unroll 6
    for (int k = 0; k < N; ++k) sum = sum + (transposed ? Row<real, N>::load(m + N * k) : column[k]) * x[k];
    return sum;
}
template <int N> GPUSIM_FN void take_rows(const real* m, bool transposed, const real* x, real* out) {
    (Row<real, N>::load(out) - block_times<N>(m, transposed, x)).store(out);
}
#endif
GPUSIM_FN void take_block(const World& w, const RowPart& at, const real* m, bool transposed, const real* x, real* out) {
    const int n = w.block();
#if WHOLE_BLOCKS
    RETURN_BY_BLOCK(n, take_rows<N>(m, transposed, x, out));
#endif
    for (int row = at.row; row < at.end; ++row) out[row] -= row_times_slab(n, m, row, transposed, x);
}
GPUSIM_PHASE void substitute_forward_row(const World& w, int level, int i) {
    const RowPart part = row_part(w, i);
    const int n = w.block(), at = w.level_forward()[level] + part.block;
    real* out = w.rhs() + w.forward_target()[at] * n;
    for (int k = w.forward_start()[at]; k < w.forward_start()[at + 1]; ++k) {
        const int edge = w.forward_edge()[k];
        take_block(w, part, w.lower() + edge * n * n, false, w.rhs() + w.edge_pivot()[edge] * n, out);
    }
}
GPUSIM_PHASE void divide_row(const World& w, int i) {
    const RowPart at = row_part(w, i);
    const int n = w.block();
    const real *d = w.inverse() + at.block * n * n, *y = w.rhs() + at.block * n;
    real* out = w.delta() + at.block * n;
#if WHOLE_BLOCKS
    RETURN_BY_BLOCK(n, block_times<N>(d, false, y).store(out));
#endif
    for (int row = at.row; row < at.end; ++row) out[row] = row_times_slab(n, d, row, false, y);
}
GPUSIM_PHASE void substitute_backward_row(const World& w, int level, int i) {
    const RowPart part = row_part(w, i);
    const int n = w.block(), at = w.level_pivot()[level] + part.block;
    real* out = w.delta() + w.pivot()[at] * n;
    for (int edge = w.pivot_edge()[at]; edge < w.pivot_edge()[at + 1]; ++edge)
        take_block(w, part, w.lower() + edge * n * n, true, w.delta() + w.edge_row()[edge] * n, out);
}
GPUSIM_PHASE void scale_change(const World& w, int row) { w.delta()[row] = w.delta()[row] * w.scale()[row]; }
