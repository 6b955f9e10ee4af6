// The triangles of a height field against a convex shape: where they touch, and with which normals. All in
// the field's frame.
//
// A triangle's own face: what of the shape lies over the triangle (straight up and down), measured along the triangle's
// normal, at any depth, so that a shape below the surface is pushed out of it. Ridges and peaks: nearest points of the
// shape and the triangle made a prism, kept only where the normal is one that the surface has there (between the
// normals of the triangles around). Edges between triangles in one plane, and in valleys, so give no normal of
// their own, and what slides over them is not kicked.
#pragma once
#include "convex.cuh"
#include "shape.cuh"
#include "support.cuh"

#define FIELD_MANIFOLDS 3     // most normals that one shape may touch a field with
#define FIELD_CONE 0.985      // cosine of 10 degrees: contacts with normals closer than this make one manifold
#define FIELD_TIE 1e-6        // of the shape's size: gaps and places that differ by less count as equal
#define FIELD_FLAT 1e-6       // of a spacing: how far the next triangle must fall away to make a ridge
#define FIELD_LEAN 1e-3       // sine by which a normal may miss the ones that the surface has
#define FIELD_INSIDE 1e-9     // share of a triangle by which a point over its rim still is over it
#define FIELD_CORNERS (FACE_CORNERS + 4)
#define FIELD_SUPPORT 480     // features: corners of the shape below, cells from FIELD_CELLS
#define FIELD_CELLS 512

struct FieldPoint {
    double b[3], n[3], gap, score;
    int feature;
    bool found;
};

// What is looked for: the deepest contact whose normal is not near the first `known` normals (best[4]), or, with
// `spread`, those nearest to normal number `known` that lie farthest out in four directions (best[0..3]).
struct FieldScan {
    const Shape *field, *body;  // body: in the field's frame
    int columns, rows, first_column, last_column, first_row, last_row;
    double dx, dy, margin, radius, size, low, depth;
    int known;
    bool spread;
    double normals[3 * FIELD_MANIFOLDS], along[3], across[3], weight;
    FieldPoint best[5];
};

// One triangle: corners 0, 1, 2 counterclockwise from above; corner 0 is (column, row) of the cell.
struct FieldTriangle {
    int column, row, half;
    double corner[9], n[3];
};

GPUSIM_FN void field_corner(const FieldScan& s, int column, int row, double* out) {
    out[0] = (column - 0.5 * (s.columns - 1)) * s.dx;
    out[1] = (row - 0.5 * (s.rows - 1)) * s.dy;
    out[2] = s.field->points[row * s.columns + column];
}

// Columns and rows from corner 0 to corner k, and to the far corner of the triangle beyond edge k (k to k + 1).
GPUSIM_FN int field_step(int half, int k, bool row) {
    if (k == 0) return 0;
    if (half == 0) return row ? (k == 2 ? 1 : 0) : 1;
    return row ? 1 : (k == 1 ? 1 : 0);
}
GPUSIM_FN int field_beyond(int half, int k, bool row) {
    if (half == 0) return row ? (k == 0 ? -1 : 1) : (k == 1 ? 2 : 0);
    return row ? (k == 1 ? 2 : 0) : (k == 2 ? -1 : 1);
}

GPUSIM_FN void field_triangle(const FieldScan& s, int column, int row, int half, FieldTriangle& t) {
    t.column = column;
    t.row = row;
    t.half = half;
    for (int k = 0; k < 3; ++k)
        field_corner(s, column + field_step(half, k, false), row + field_step(half, k, true), t.corner + 3 * k);
    const double* c = t.corner;
    const double gx = (half == 0 ? c[5] - c[2] : c[5] - c[8]) / s.dx;
    const double gy = (half == 0 ? c[8] - c[5] : c[8] - c[2]) / s.dy;
    const double length = square_root(gx * gx + gy * gy + 1.0);
    t.n[0] = -gx / length;
    t.n[1] = -gy / length;
    t.n[2] = 1.0 / length;
}

// Share of corner k at a point seen from above; all three are >= 0 over the triangle.
GPUSIM_FN double field_share(const FieldScan& s, const FieldTriangle& t, const double* p, int k) {
    const double u = (p[0] - t.corner[0]) / s.dx, v = (p[1] - t.corner[1]) / s.dy;
    if (t.half == 0) return k == 0 ? 1.0 - u : (k == 1 ? u - v : v);
    return k == 0 ? 1.0 - v : (k == 1 ? u : v - u);
}

GPUSIM_FN double plane_gap(const FieldTriangle& t, const double* p) {
    return (p[0] - t.corner[0]) * t.n[0] + (p[1] - t.corner[1]) * t.n[1] + (p[2] - t.corner[2]) * t.n[2];
}

GPUSIM_FN void field_keep(FieldPoint& slot, const double* b, const double* n, double gap, double score, int feature) {
    for (int k = 0; k < 3; ++k) {
        slot.b[k] = b[k];
        slot.n[k] = n[k];
    }
    slot.gap = gap;
    slot.score = score;
    slot.feature = feature;
    slot.found = true;
}

// A contact at the point b of the shape with normal n: kept where it is what is looked for.
GPUSIM_SHARED void field_take(FieldScan& s, const double* b, const double* n, double gap, int feature) {
    if (gap > s.margin) return;
    for (int m = 0; m < s.known; ++m)
        if (dot3(n, s.normals + 3 * m) > FIELD_CONE) return;
    const double tie = FIELD_TIE * s.size;
    if (!s.spread) {
        if (!s.best[4].found || -gap > s.best[4].score + tie) field_keep(s.best[4], b, n, gap, -gap, feature);
        return;
    }
    if (dot3(n, s.normals + 3 * s.known) < FIELD_CONE) return;
    const double x = dot3(b, s.along), y = dot3(b, s.across), far = s.weight * gap;
    for (int k = 0; k < 4; ++k) {
        const double score = (k == 0 ? x : (k == 1 ? y : (k == 2 ? -x : -y))) - far;
        if (!s.best[k].found || score > s.best[k].score + tie) field_keep(s.best[k], b, n, gap, score, feature);
    }
}

// Number of a contact that belongs to a triangle.
GPUSIM_FN int field_feature(const FieldScan& s, const FieldTriangle& t, int k) {
    const int cell = (t.row * s.columns + t.column) % 4096;
    return FIELD_CELLS + (2 * cell + t.half) * 7 + k;
}

// What of the polygon (n corners) lies over the triangle; ids of new corners are -1 - edge.
GPUSIM_SHARED int field_clip(const FieldScan& s, const FieldTriangle& t, double* polygon, int* ids, int n) {
    double old[3 * FIELD_CORNERS];
    int old_ids[FIELD_CORNERS];
    for (int side = 0; side < 3 && n > 0; ++side) {
        for (int i = 0; i < 3 * n; ++i) old[i] = polygon[i];
        for (int i = 0; i < n; ++i) old_ids[i] = ids[i];
        int count = 0;
        for (int i = 0; i < n; ++i) {
            const int j = i + 1 == n ? 0 : i + 1;
            const double *p = old + 3 * i, *q = old + 3 * j;
            const double di = field_share(s, t, p, side) + FIELD_INSIDE, dj = field_share(s, t, q, side) + FIELD_INSIDE;
            if (di >= 0.0 && count < FIELD_CORNERS) {
                copy3(p, polygon + 3 * count);
                ids[count++] = old_ids[i];
            }
            if ((di >= 0.0) != (dj >= 0.0) && count < FIELD_CORNERS) {
                const double f = di / (di - dj);
                for (int k = 0; k < 3; ++k) polygon[3 * count + k] = p[k] + f * (q[k] - p[k]);
                ids[count++] = -1 - side;
            }
        }
        n = count;
    }
    return n;
}

// Contacts with the triangle's own face. 0: the shape is out of reach; 1: its nearest point lies over the triangle,
// which has nothing nearer then; 2: over another one.
GPUSIM_SHARED int field_face(FieldScan& s, const FieldTriangle& t) {
    const double down[3] = {-t.n[0], -t.n[1], -t.n[2]};
    double nearest[3], polygon[3 * FIELD_CORNERS];
    int ids[FIELD_CORNERS], vertex;
    support(*s.body, down, nearest, &vertex);
    for (int k = 0; k < 3; ++k) nearest[k] = nearest[k] - s.radius * t.n[k];
    const double gap = plane_gap(t, nearest);
    if (gap > s.margin) return 0;
    int n = face_polygon(*s.body, down, polygon, ids);
    for (int i = 0; i < 3 * n; ++i) polygon[i] = polygon[i] - s.radius * t.n[i % 3];
    n = field_clip(s, t, polygon, ids, n);
    for (int i = 0; i < n; ++i) {
        const int feature = ids[i] < 0 ? field_feature(s, t, -1 - ids[i]) : ids[i];
        field_take(s, polygon + 3 * i, t.n, plane_gap(t, polygon + 3 * i), feature);
    }
    for (int k = 0; k < 3; ++k)
        if (field_share(s, t, nearest, k) < -FIELD_INSIDE) return 2;
    field_take(s, nearest, t.n, gap, FIELD_SUPPORT);
    return 1;
}

// Whether the surface falls away from a point of it towards the corner (column, row), seen along n. True past the rim.
GPUSIM_FN bool field_falls(const FieldScan& s, const double* from, const double* n, int column, int row) {
    if (column < 0 || row < 0 || column >= s.columns || row >= s.rows) return true;
    double to[3];
    field_corner(s, column, row, to);
    subtract3(to, from, to);
    return dot3(to, n) <= FIELD_LEAN * norm3(to);
}

// Whether n is a normal that the surface has at corner or edge k of the triangle.
GPUSIM_FN bool field_has_normal(const FieldScan& s, const FieldTriangle& t, int k, bool edge, const double* n) {
    const double* p = t.corner + 3 * k;
    const int column = t.column + field_step(t.half, k, false), row = t.row + field_step(t.half, k, true);
    if (edge) {
        const int last = k == 0 ? 2 : k - 1;
        return field_falls(s, p, n, t.column + field_beyond(t.half, k, false), t.row + field_beyond(t.half, k, true))
            && field_falls(s, p, n, t.column + field_step(t.half, last, false),
                           t.row + field_step(t.half, last, true));
    }
    return field_falls(s, p, n, column + 1, row) && field_falls(s, p, n, column - 1, row)
        && field_falls(s, p, n, column, row + 1) && field_falls(s, p, n, column, row - 1)
        && field_falls(s, p, n, column + 1, row + 1) && field_falls(s, p, n, column - 1, row - 1);
}

// Whether an edge of the triangle is a ridge, or the rim of the field.
GPUSIM_FN bool field_has_ridge(const FieldScan& s, const FieldTriangle& t) {
    for (int k = 0; k < 3; ++k) {
        const int column = t.column + field_beyond(t.half, k, false), row = t.row + field_beyond(t.half, k, true);
        if (column < 0 || row < 0 || column >= s.columns || row >= s.rows) return true;
        double p[3];
        field_corner(s, column, row, p);
        if (plane_gap(t, p) < -FIELD_FLAT * (s.dx + s.dy)) return true;
    }
    return false;
}

// The triangle, made a prism of the scan's depth. The arrays are the shape's own.
GPUSIM_FN void field_prism(const FieldScan& s, const FieldTriangle& t, double* size, double* points, double* normals,
                           int* first, int* vertex, Shape& out) {
    for (int k = 0; k < 9; ++k) {
        points[k] = t.corner[k];
        points[9 + k] = k % 3 == 2 ? t.corner[k] - s.depth : t.corner[k];
    }
    for (int k = 0; k < 3; ++k) {
        const int next = k == 2 ? 0 : k + 1;
        const double x = t.corner[3 * next] - t.corner[3 * k], y = t.corner[3 * next + 1] - t.corner[3 * k + 1];
        const double length = square_root(x * x + y * y);
        normals[k] = t.n[k];
        normals[3 + k] = -t.n[k];
        normals[6 + 3 * k] = y / length;
        normals[7 + 3 * k] = -x / length;
        normals[8 + 3 * k] = 0.0;
        vertex[k] = k;
        vertex[3 + k] = 5 - k;
        vertex[6 + 4 * k] = k;
        vertex[7 + 4 * k] = 3 + k;
        vertex[8 + 4 * k] = 3 + next;
        vertex[9 + 4 * k] = next;
    }
    first[0] = 0; first[1] = 3; first[2] = 6; first[3] = 10; first[4] = 14; first[5] = 18;
    for (int k = 0; k < 8; ++k) size[k] = 0.0;
    out.kind = SHAPE_HULL;
    out.num_points = 6;
    out.num_faces = 5;
    out.size = size;
    out.points = points;
    out.face_first = first;
    out.face_vertex = vertex;
    out.face_normal = normals;
    for (int k = 0; k < 9; ++k) {
        if (k < 3) out.center[k] = 0.0;
        out.turn[k] = k % 4 == 0 ? 1.0 : 0.0;
    }
}

// Contacts with the triangle's edges and corners where they are ridges and peaks.
GPUSIM_SHARED void field_ridge(FieldScan& s, const FieldTriangle& t) {
    double size[8], points[18], normals[15], guess[4] = {t.n[0], t.n[1], t.n[2], 0.0};
    int first[6], vertex[18];
    Shape prism;
    Manifold m;
    field_prism(s, t, size, points, normals, first, vertex, prism);
    convex_convex(prism, *s.body, s.margin, guess, m);
    for (int i = 0; i < m.count; ++i) {
        const double *a = m.a + 3 * i, *b = m.b + 3 * i;
        if (magnitude(plane_gap(t, a)) > FIELD_TIE * (s.dx + s.dy)) continue;
        int large = 0, low = 0, high = 0;
        for (int k = 0; k < 3; ++k) {
            const double share = field_share(s, t, a, k);
            if (share > FIELD_TIE) {
                large += 1;
                high = k;
            } else {
                low = k;
            }
        }
        if (large == 3 || large == 0) continue;
        // The edge opposite to corner `low` starts at the next one.
        const int k = large == 1 ? high : (low == 2 ? 0 : low + 1);
        if (!field_has_normal(s, t, k, large == 2, m.normal)) continue;
        double gap = 0.0;
        for (int c = 0; c < 3; ++c) gap = gap + m.normal[c] * (b[c] - a[c]);
        field_take(s, b, m.normal, gap, field_feature(s, t, 3 + i));
    }
}

// All triangles under the shape's bounds.
GPUSIM_SHARED void field_scan(FieldScan& s) {
    for (int k = 0; k < 5; ++k) s.best[k].found = false;
    FieldTriangle t;
    for (int row = s.first_row; row <= s.last_row; ++row)
        for (int column = s.first_column; column <= s.last_column; ++column) {
            const double* h = s.field->points + row * s.columns + column;
            const double high = larger(larger(h[0], h[1]), larger(h[s.columns], h[s.columns + 1]));
            if (s.low > high + s.margin) continue;
            for (int half = 0; half < 2; ++half) {
                field_triangle(s, column, row, half, t);
                if (field_face(s, t) == 2 && field_has_ridge(s, t)) field_ridge(s, t);
            }
        }
}
