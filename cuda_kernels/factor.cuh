// Block LDL^T of A = J M^-1 J^T + gamma: executes the operations that gpusim/solver/elimination.py listed, level by
// level (gpusim/reference/factor.py). Blocks: the diagonal ones, one for each constraint, then the entries of L.
#pragma once
#include "rows.cuh"

// One number of the blocks of J M^-1 J^T: item i = block * block_size^2 + row * block_size + column.
GPUSIM_PHASE void product_entry(const World& w, int i) {
    const int n = w.block(), square = n * n, target = i / square, r = (i - target * square) / n, c = i - target * square - r * n;
    real sum = real(0);
    for (int k = w.product_start()[target]; k < w.product_start()[target + 1]; ++k)
        sum += dot6(w.jacobian() + 6 * (w.product_i()[k] * n + r), w.mass_jacobian() + 6 * (w.product_j()[k] * n + c));
    w.mass_blocks()[i] = sum;
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
    const real own = w.own()[row];
    real shown = own * real(1.0 + REGULARIZATION) + w.gamma()[row];
    if (!(shown > real(0))) shown = real(1);
    const real scale = w.axes() ? square_root(own / shown) : real(1);
    w.scale()[row] = scale;
    w.shown()[row] = shown * scale * scale;
    w.factored()[row] = w.gamma()[row];
}
GPUSIM_PHASE void scale_entry(const World& w, int i) {
    const int n = w.block(), square = n * n, target = i / square, r = (i - target * square) / n, c = i - target * square - r * n;
    const int row = w.block_row()[target] * n + r, column = w.block_column()[target] * n + c;
    const bool diagonal = target < w.constraints() && r == c;
    w.factor_blocks()[i] = diagonal ? w.shown()[row] : w.mass_blocks()[i] * w.scale()[row] * w.scale()[column];
}

// The operations of one level: pivots, column, updates.
GPUSIM_PHASE void invert_pivot(const World& w, int level, int i) {
    const int n = w.block(), pivot = w.pivot()[w.level_pivot()[level] + i];
    real *out = w.inverse() + pivot * n * n, *from = w.factor_blocks() + pivot * n * n;
    for (int k = 0; k < n * n; ++k) out[k] = from[k];
    invert_block(out, n, n);
}
GPUSIM_PHASE void divide_entry(const World& w, int level, int i) {
    const int n = w.block(), square = n * n, edge = w.level_edge()[level] + i / square, r = i % square / n, c = i % n;
    const real *a = w.factor_blocks() + w.edge_block()[edge] * square + r * n, *d = w.inverse() + w.edge_pivot()[edge] * square + c;
    real sum = real(0);
    for (int k = 0; k < n; ++k) sum += a[k] * d[k * n];
    w.lower()[edge * square + r * n + c] = sum;
}
GPUSIM_PHASE void update_entry(const World& w, int level, int i) {
    const int n = w.block(), square = n * n, target = w.level_target()[level] + i / square, r = i % square / n, c = i % n;
    real* out = w.factor_blocks() + w.target_block()[target] * square + r * n + c;
    real value = *out;
    for (int k = w.update_start()[target]; k < w.update_start()[target + 1]; ++k) {
        const real* l = w.lower() + w.update_left()[k] * square + r * n;
        const real* a = w.factor_blocks() + w.edge_block()[w.update_right()[k]] * square + c * n;
        real sum = real(0);
        for (int m = 0; m < n; ++m) sum += l[m] * a[m];
        value -= sum;
    }
    *out = value;
}
GPUSIM_FN int level_pivots(const World& w, int level) { return w.level_pivot()[level + 1] - w.level_pivot()[level]; }
GPUSIM_FN int level_edges(const World& w, int level) { return w.level_edge()[level + 1] - w.level_edge()[level]; }
GPUSIM_FN int level_targets(const World& w, int level) { return w.level_target()[level + 1] - w.level_target()[level]; }
GPUSIM_FN int level_rows(const World& w, int level) { return w.level_forward()[level + 1] - w.level_forward()[level]; }

// Solves in ``right``; the result goes to ``change``.
GPUSIM_PHASE void scale_right(const World& w, int row) { w.right()[row] = w.right()[row] * w.scale()[row]; }
GPUSIM_PHASE void forward_row(const World& w, int level, int i) {
    const int n = w.block(), at = w.level_forward()[level] + i / n, r = i % n;
    real* out = w.right() + w.forward_target()[at] * n + r;
    real value = *out;
    for (int k = w.forward_start()[at]; k < w.forward_start()[at + 1]; ++k) {
        const int edge = w.forward_edge()[k];
        const real *l = w.lower() + (edge * n + r) * n, *y = w.right() + w.edge_pivot()[edge] * n;
        real sum = real(0);
        for (int m = 0; m < n; ++m) sum += l[m] * y[m];
        value -= sum;
    }
    *out = value;
}
GPUSIM_PHASE void divide_row(const World& w, int row) {
    const int n = w.block(), c = row / n;
    const real *d = w.inverse() + row * n, *y = w.right() + c * n;
    real sum = real(0);
    for (int m = 0; m < n; ++m) sum += d[m] * y[m];
    w.change()[row] = sum;
}
GPUSIM_PHASE void backward_row(const World& w, int level, int i) {
    const int n = w.block(), at = w.level_pivot()[level] + i / n, pivot = w.pivot()[at], r = i % n;
    real value = w.change()[pivot * n + r];
    for (int edge = w.pivot_edge()[at]; edge < w.pivot_edge()[at + 1]; ++edge) {
        const real *l = w.lower() + edge * n * n + r, *x = w.change() + w.edge_row()[edge] * n;
        real sum = real(0);
        for (int m = 0; m < n; ++m) sum += l[m * n] * x[m];
        value -= sum;
    }
    w.change()[pivot * n + r] = value;
}
GPUSIM_PHASE void scale_change(const World& w, int row) { w.change()[row] = w.change()[row] * w.scale()[row]; }
