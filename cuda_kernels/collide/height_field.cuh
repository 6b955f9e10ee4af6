// Height field against convex shapes.
#pragma once
#include "field_scan.cuh"

// Find the first and the last cell along one axis that overlap [low, high]. Return false if no cell overlaps.
GPUSIM_FN bool field_cells(double low, double high, int corners, double spacing, int* first, int* last) {
    const double from = low / spacing + 0.5 * (corners - 1), to = high / spacing + 0.5 * (corners - 1);
    if (to < 0.0 || from > corners - 1.0) return false;
    *first = int(clamped(from, 0.0, corners - 2.0));
    *last = int(clamped(to, 0.0, corners - 2.0));
    return true;
}

// Transform the shape to the frame of the ground, and set the values that all scans need.
GPUSIM_FN void ground_prepare(const Shape& field, const Shape& b, double margin, Shape& body, FieldScan& s,
                              double* lower, double* upper) {
    body = b;
    double d[3];
    subtract3(b.center, field.center, d);
    rotate_back3(field.rotation, d, body.center);
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            body.rotation[3 * i + j] = field.rotation[i] * b.rotation[j] + field.rotation[3 + i] * b.rotation[3 + j]
                                 + field.rotation[6 + i] * b.rotation[6 + j];
    shape_bounds(body, lower, upper);
    s.field = &field;
    s.body = &body;
    s.margin = margin;
    s.radius = core_radius(b);
    s.size = (upper[0] - lower[0]) + (upper[1] - lower[1]) + (upper[2] - lower[2]);
    s.weight = 0.25 * s.size / (margin + 1e-3 * s.size);
    s.known = 0;
    s.max_manifolds = 1;
}

// Prepare a scan of a height field. Return false if no cells are below the shape.
GPUSIM_SHARED bool field_prepare(const Shape& field, const Shape& b, double margin, Shape& body, FieldScan& s) {
    double lower[3], upper[3];
    ground_prepare(field, b, margin, body, s, lower, upper);
    s.columns = int(field.size[0]);
    s.rows = int(field.size[1]);
    s.dx = field.size[2];
    s.dy = field.size[3];
    s.low = lower[2];
    s.depth = 2.0 * s.size + s.dx + s.dy;
    return field_cells(lower[0] - margin, upper[0] + margin, s.columns, s.dx, &s.first_column, &s.last_column)
        && field_cells(lower[1] - margin, upper[1] + margin, s.rows, s.dy, &s.first_row, &s.last_row);
}

// Find the contact of a shape that is completely below the surface. Use the normal of the triangle above `p`.
GPUSIM_SHARED void field_push_out(FieldScan& s, const double* p) {
    FieldTriangle t;
    if (!field_at(s, p, t)) return;
    if (plane_gap(t, p) > 0.0) return;
    const double down[3] = {-t.n[0], -t.n[1], -t.n[2]};
    double nearest[3];
    int vertex;
    support(*s.body, down, nearest, &vertex);
    for (int k = 0; k < 3; ++k) nearest[k] = nearest[k] - s.radius * t.n[k];
    field_add(s, nearest, t.n, plane_gap(t, nearest), FIELD_SUPPORT);
}

GPUSIM_FN void field_rescue(FieldScan& s, const Shape& body) {
    const double down[3] = {0.0, 0.0, -1.0};
    double lowest[3];
    int vertex;
    support(body, down, lowest, &vertex);
    lowest[2] = lowest[2] - s.radius;
    field_push_out(s, lowest);
    if (!s.best[4].found) field_push_out(s, body.center);
}

// Choose two directions perpendicular to n, near the diagonals of the body axes, because boxes have corners at the
// diagonals.
GPUSIM_FN void field_axes(FieldScan& s, const double* n) {
    const double* m = s.body->rotation;
    int best = 0;
    for (int k = 1; k < 3; ++k) {
        const double cosine = m[k] * n[0] + m[3 + k] * n[1] + m[6 + k] * n[2];
        const double min_cosine = m[best] * n[0] + m[3 + best] * n[1] + m[6 + best] * n[2];
        if (abs_(cosine) < abs_(min_cosine) - FIELD_TIE) best = k;
    }
    const double axis[3] = {m[best], m[3 + best], m[6 + best]};
    double x[3], y[3];
    cross3(n, axis, y);
    const double length = norm3(y);
    for (int k = 0; k < 3; ++k) y[k] = y[k] / length;
    cross3(y, n, x);
    for (int k = 0; k < 3; ++k) {
        s.along[k] = 0.725 * x[k] + 0.6887489 * y[k];
        s.across[k] = 0.725 * y[k] - 0.6887489 * x[k];
    }
}

GPUSIM_FN double field_square_distance(const FieldPoint& p, const FieldPoint& q) {
    const double d[3] = {p.b[0] - q.b[0], p.b[1] - q.b[1], p.b[2] - q.b[2]};
    return dot3(d, d);
}

// Unless one of the four points is as deep as the deepest point, replace the nearest of the four by the deepest point.
GPUSIM_FN void field_add_deepest(FieldScan& s, const FieldPoint& deepest) {
    int nearest = 0;
    double min_gap = 1e300;
    for (int k = 0; k < 4; ++k) {
        if (!s.best[k].found) continue;
        min_gap = min_(min_gap, s.best[k].gap);
        if (!s.best[nearest].found
            || field_square_distance(s.best[k], deepest) < field_square_distance(s.best[nearest], deepest))
            nearest = k;
    }
    if (deepest.gap < min_gap - FIELD_TIE * s.size) s.best[nearest] = deepest;
}

// Keep only the first of several points with the same position.
GPUSIM_FN void field_merge(FieldScan& s) {
    const double merge = 1e-6 * s.size * s.size;
    for (int k = 3; k > 0; --k)
        for (int m = 0; m < k; ++m)
            if (s.best[m].found && field_square_distance(s.best[m], s.best[k]) < merge) s.best[k].found = false;
}

GPUSIM_SHARED void field_write(const Shape& field, const FieldScan& s, const double* n, Manifold& out) {
    out.count = 0;
    rotate3(field.rotation, n, out.normal);
    for (int k = 0; k < 4; ++k) {
        if (!s.best[k].found) continue;
        double b[3];
        rotate3(field.rotation, s.best[k].b, b);
        for (int c = 0; c < 3; ++c) {
            out.b[3 * out.count + c] = field.center[c] + b[c];
            out.a[3 * out.count + c] = out.b[3 * out.count + c] - s.best[k].gap * out.normal[c];
        }
        int feature = s.best[k].feature & 65535;
        for (int m = 0; m < out.count; ++m)
            if (out.feature[m] == feature) {
                feature = (feature + 1) & 65535;
                m = -1;
            }
        out.feature[out.count++] = feature;
    }
}

// Add the seed of another manifold. Remove earlier seeds that do not block the shape.
template <class Scan> GPUSIM_SHARED void field_add_seed(Scan& s, const FieldPoint& seed, Manifold* out) {
    int remaining = 0;
    for (int m = 0; m < s.known; ++m) {
        if (!field_blocks(s, seed, s.seeds[m])) continue;
        if (remaining < m) {
            s.seeds[remaining] = s.seeds[m];
            out[remaining] = out[m];
        }
        remaining += 1;
    }
    s.known = remaining;
    s.seeds[remaining] = seed;
}

// Compute up to `max_manifolds` manifolds whose normals differ by more than 10 degrees, as for a wheel in a groove.
// Return the number of manifolds.
template <class Scan>
GPUSIM_FN int ground_manifolds(const Shape& field, const Shape& body, Scan& s, int max_manifolds, Manifold* out) {
    const bool single = SINGLE_POINT_SHAPES >> body.kind & 1;
    s.max_manifolds = max_manifolds < MANIFOLDS ? max_manifolds : MANIFOLDS;
    s.others = true;
    for (int round = 0; round < 2 * MANIFOLDS && s.known < s.max_manifolds && s.others; ++round) {
        s.spread = s.seen = s.others = false;
        field_scan(s);
        if (s.known == 0 && !s.best[4].found) field_rescue(s, body);
        if (!s.best[4].found) break;
        const FieldPoint deepest = s.best[4];
        field_add_seed(s, deepest, out);
        if (single) {
            for (int k = 0; k < 4; ++k) s.best[k].found = false;
            s.best[0] = deepest;
        } else {
            field_axes(s, deepest.n);
            s.spread = true;
            field_scan(s);
            if (!s.best[0].found) s.best[0] = deepest;
            field_add_deepest(s, deepest);
            field_merge(s);
            field_add_deepest(s, deepest);  // field_merge may have removed the deepest contact
        }
        field_write(field, s, deepest.n, out[s.known]);
        s.known = s.known + 1;
    }
    return s.known;
}

GPUSIM_SHARED int height_field_manifolds(const Shape& field, const Shape& b, double margin, int max_manifolds,
                                         Manifold* out) {
    Shape body;
    FieldScan s;
    if (!field_prepare(field, b, margin, body, s)) return 0;
    return ground_manifolds(field, body, s, max_manifolds, out);
}

GPUSIM_SHARED int height_field_convex(const Shape& field, const Shape& b, double margin, Manifold& out) {
    out.count = 0;
    height_field_manifolds(field, b, margin, 1, &out);
    return out.count;
}
