// Block LDL^T of A = J M^-1 J^T + gamma: executes the operations that gpusim/model/elimination.py listed, level by
// level (gpusim/reference/factor.py). Blocks: the diagonal ones, one for each constraint, then the entries of L.
#pragma once
#include "rows.cuh"

// Items of block products: each number of a row on a GPU, which has the threads, the whole row on a CPU, which has not.
#if GPUSIM_GPU || defined(GPUSIM_TEAM)
GPUSIM_FN int row_parts(const World& w) { return w.block(); }
#else
GPUSIM_FN int row_parts(const World&) { return 1; }
#endif
struct BlockRow {
    int block, row, column;  // the item's columns are column, column + row_parts, ...
};
GPUSIM_FN BlockRow block_row(const World& w, int i) {
    const int parts = row_parts(w), n = w.block(), row = i / parts;
    return {row / n, row % n, i - row * parts};
}
GPUSIM_FN int block_items(const World& w, int blocks) { return blocks * w.block() * row_parts(w); }

// Blocks of J M^-1 J^T.
GPUSIM_PHASE void product_entry(const World& w, int i) {
    const BlockRow at = block_row(w, i);
    const int n = w.block(), first = w.product_start()[at.block], end = w.product_start()[at.block + 1];
    real* out = w.mass_blocks() + (at.block * n + at.row) * n;
    for (int c = at.column; c < n; c += row_parts(w)) {
        real sum = real(0);
        for (int k = first; k < end; ++k)
            sum += dot6(w.jacobian() + 6 * (w.product_i()[k] * n + at.row), w.mass_jacobian() + 6 * (w.product_j()[k] * n + c));
        out[c] = sum;
    }
}

// Inverse of a positive definite matrix of n rows, ``width`` numbers apart (Gauss and Jordan, no pivoting), in place.
GPUSIM_SHARED void invert_block(real* m, int n, int width) {
    for (int p = 0; p < n; ++p) {
        real* pivot = m + p * width;
        const real scale = real(1) / pivot[p];
        pivot[p] = real(1);
        for (int c = 0; c < n; ++c) pivot[c] = pivot[c] * scale;
        for (int r = 0; r < n; ++r) {
            if (r == p) continue;
            real* row = m + r * width;
            const real factor = row[p];
            row[p] = real(0);
            for (int c = 0; c < n; ++c) row[c] = row[c] - factor * pivot[c];
        }
    }
}

// Diagonal of A as it is divided by, and the scale that keeps the compliance of free rows (1e30) out of the others.
GPUSIM_PHASE void scale_row(const World& w, int row) {
    const real own = w.diagonal()[row];
    real shown = own * real(1.0 + REGULARIZATION) + w.gamma()[row];
    if (!(shown > real(0))) shown = real(1);
    const real scale = w.axes() ? square_root(own / shown) : real(1);
    w.scale()[row] = scale;
    w.scaled_diagonal()[row] = shown * scale * scale;
    w.factored_gamma()[row] = w.gamma()[row];
}
GPUSIM_PHASE void scale_entry(const World& w, int i) {
    const BlockRow at = block_row(w, i);
    const int n = w.block(), row = w.block_row()[at.block] * n + at.row, columns = w.block_column()[at.block] * n;
    const bool diagonal = at.block < w.constraints();
    const real *from = w.mass_blocks() + (at.block * n + at.row) * n, *scale = w.scale() + columns;
    real *out = w.factor_blocks() + (at.block * n + at.row) * n, own = w.scale()[row];
    for (int c = at.column; c < n; c += row_parts(w)) out[c] = diagonal && c == at.row ? w.scaled_diagonal()[row] : from[c] * own * scale[c];
}

// The operations of one level: pivots, column, updates.
GPUSIM_PHASE void invert_pivot(const World& w, int level, int i) {
    const int n = w.block(), pivot = w.pivot()[w.level_pivot()[level] + i];
    real *out = w.inverse() + pivot * n * n, *from = w.factor_blocks() + pivot * n * n;
    for (int k = 0; k < n * n; ++k) out[k] = from[k];
    invert_block(out, n, n);
}
GPUSIM_PHASE void divide_entry(const World& w, int level, int i) {
    const BlockRow at = block_row(w, i);
    const int n = w.block(), square = n * n, edge = w.level_edge()[level] + at.block;
    const real *a = w.factor_blocks() + w.edge_block()[edge] * square + at.row * n, *d = w.inverse() + w.edge_pivot()[edge] * square;
    real* out = w.lower() + edge * square + at.row * n;
    for (int c = at.column; c < n; c += row_parts(w)) {
        real sum = real(0);
        for (int k = 0; k < n; ++k) sum += a[k] * d[k * n + c];
        out[c] = sum;
    }
}
GPUSIM_PHASE void update_entry(const World& w, int level, int i) {
    const BlockRow at = block_row(w, i);
    const int n = w.block(), square = n * n, target = w.level_target()[level] + at.block;
    real* out = w.factor_blocks() + w.target_block()[target] * square + at.row * n;
    for (int k = w.update_start()[target]; k < w.update_start()[target + 1]; ++k) {
        const real* l = w.lower() + w.update_left()[k] * square + at.row * n;
        const real* a = w.factor_blocks() + w.edge_block()[w.update_right()[k]] * square;
        for (int c = at.column; c < n; c += row_parts(w)) {
            real sum = real(0);
            for (int m = 0; m < n; ++m) sum += l[m] * a[c * n + m];
            out[c] -= sum;
        }
    }
}
GPUSIM_FN int level_pivots(const World& w, int level) { return w.level_pivot()[level + 1] - w.level_pivot()[level]; }
GPUSIM_FN int level_edges(const World& w, int level) { return w.level_edge()[level + 1] - w.level_edge()[level]; }
GPUSIM_FN int level_targets(const World& w, int level) { return w.level_target()[level + 1] - w.level_target()[level]; }
GPUSIM_FN int level_rows(const World& w, int level) { return w.level_forward()[level + 1] - w.level_forward()[level]; }

// Solves in ``right``; the result goes to ``change``.
GPUSIM_PHASE void scale_right(const World& w, int row) { w.rhs()[row] = w.rhs()[row] * w.scale()[row]; }
GPUSIM_PHASE void substitute_forward_row(const World& w, int level, int i) {
    const int n = w.block(), at = w.level_forward()[level] + i / n, r = i % n;
    real* out = w.rhs() + w.forward_target()[at] * n + r;
    real value = *out;
    for (int k = w.forward_start()[at]; k < w.forward_start()[at + 1]; ++k) {
        const int edge = w.forward_edge()[k];
        const real *l = w.lower() + (edge * n + r) * n, *y = w.rhs() + w.edge_pivot()[edge] * n;
        real sum = real(0);
        for (int m = 0; m < n; ++m) sum += l[m] * y[m];
        value -= sum;
    }
    *out = value;
}
GPUSIM_PHASE void divide_row(const World& w, int row) {
    const int n = w.block(), c = row / n;
    const real *d = w.inverse() + row * n, *y = w.rhs() + c * n;
    real sum = real(0);
    for (int m = 0; m < n; ++m) sum += d[m] * y[m];
    w.delta()[row] = sum;
}
GPUSIM_PHASE void substitute_backward_row(const World& w, int level, int i) {
    const int n = w.block(), at = w.level_pivot()[level] + i / n, pivot = w.pivot()[at], r = i % n;
    real value = w.delta()[pivot * n + r];
    for (int edge = w.pivot_edge()[at]; edge < w.pivot_edge()[at + 1]; ++edge) {
        const real *l = w.lower() + edge * n * n + r, *x = w.delta() + w.edge_row()[edge] * n;
        real sum = real(0);
        for (int m = 0; m < n; ++m) sum += l[m * n] * x[m];
        value -= sum;
    }
    w.delta()[pivot * n + r] = value;
}
GPUSIM_PHASE void scale_change(const World& w, int row) { w.delta()[row] = w.delta()[row] * w.scale()[row]; }
