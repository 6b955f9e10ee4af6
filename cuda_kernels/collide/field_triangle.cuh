// Triangles of a height field, in the frame of the field. The *foot* of a point is the nearest
// point of a triangle's plane.
#pragma once
#include "convex.cuh"
#include "shape.cuh"
#include "support.cuh"

#define FIELD_CONE 0.985      // cosine of 10 degrees: minimum angle between the normals of manifolds
#define FIELD_NEAR 0.9963     // cosine of 5 degrees: normals within this angle of one normal share a manifold
#define FIELD_LOWEST 1e-3     // relative to the shape's size: maximum height of a manifold's first point
#define FIELD_STEP 2e-4       // relative to the shape's size: minimum rise of the ground that blocks a shape
#define FIELD_TIE 1e-6        // relative to the shape's size: gaps and positions that differ by less count as equal
#define FIELD_FLAT 1e-6       // relative to the grid spacing: minimum fall of the next triangle at a ridge
#define FIELD_TILT 1e-3       // sine of the angle tolerance of surface normals
#define FIELD_UPRIGHT 0.9999995  // cosine of the angle tolerance of surface normals
#define FIELD_INSIDE 1e-9     // barycentric tolerance for points outside the rim of a triangle
#define FIELD_CORNERS (FACE_CORNERS + 4)
#define FIELD_SUPPORT 480     // feature numbers: corners of the shape below FIELD_SUPPORT, cells from FIELD_CELLS
#define FIELD_CELLS 512
#define FIELD_FAR 0           // result of field_face: the shape is out of reach
#define FIELD_HIT 1           // the face contains the nearest point of the surface
#define FIELD_MISS 2          // another triangle or a ridge may contain the nearest point
#define FIELD_CANDIDATE 3     // the face has the contact, unless another triangle requires a shorter motion

struct FieldPoint {
    double b[3], n[3], gap, score;
    int feature;
    bool found;
};

// Input and state of a scan. Without `spread`, the scan finds the deepest contact (best[4]) whose normal differs from
// the normals of the first `known` seeds. With `spread`, the scan finds the contacts near the normal of seed `known`
// that are farthest in four directions (best[0..3]). With `max_manifolds` > 1, `others` is true if another scan may
// find another normal.
struct FieldScan {
    const Shape *field, *body;  // `body` is in the frame of the field
    int columns, rows, first_column, last_column, first_row, last_row;
    double dx, dy, margin, radius, size, low, depth;
    int known, max_manifolds;
    bool spread, seen, others;
    double first[3], along[3], across[3], weight;
    FieldPoint best[5], seeds[MANIFOLDS];
};

// Triangle with corners 0, 1, 2, counterclockwise seen from above. Corner 0 is corner (column, row) of the cell.
struct FieldTriangle {
    int column, row, half;
    double corner[9], n[3];
};

GPUSIM_FN void field_corner(const FieldScan& s, int column, int row, double* out) {
    out[0] = (column - 0.5 * (s.columns - 1)) * s.dx;
    out[1] = (row - 0.5 * (s.rows - 1)) * s.dy;
    out[2] = s.field->points[row * s.columns + column];
}

// Return the offset in columns (or rows) from corner 0 to corner k.
GPUSIM_FN int field_step(int half, int k, bool row) {
    if (k == 0) return 0;
    if (half == 0) return row ? (k == 2 ? 1 : 0) : 1;
    return row ? 1 : (k == 1 ? 1 : 0);
}
// Return the offset in columns (or rows) from corner 0 to the far corner of the neighbor at edge k.
GPUSIM_FN int field_opposite(int half, int k, bool row) {
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
    const double length = sqrt_(gx * gx + gy * gy + 1.0);
    t.n[0] = -gx / length;
    t.n[1] = -gy / length;
    t.n[2] = 1.0 / length;
}

// Return the barycentric coordinate of corner k at a point, seen from above.
GPUSIM_FN double field_weight(const FieldScan& s, const FieldTriangle& t, const double* p, int k) {
    const double u = (p[0] - t.corner[0]) / s.dx, v = (p[1] - t.corner[1]) / s.dy;
    if (t.half == 0) return k == 0 ? 1.0 - u : (k == 1 ? u - v : v);
    return k == 0 ? 1.0 - v : (k == 1 ? u : v - u);
}

GPUSIM_FN double plane_gap(const FieldTriangle& t, const double* p) {
    return (p[0] - t.corner[0]) * t.n[0] + (p[1] - t.corner[1]) * t.n[1] + (p[2] - t.corner[2]) * t.n[2];
}

// Return whether the surface falls from a point towards the grid corner (column, row), seen along n. Return true if the
// corner is outside the field.
GPUSIM_FN bool field_falls(const FieldScan& s, const double* from, const double* n, int column, int row) {
    if (column < 0 || row < 0 || column >= s.columns || row >= s.rows) return true;
    double to[3];
    field_corner(s, column, row, to);
    subtract3(to, from, to);
    return dot3(to, n) <= FIELD_TILT * norm3(to);
}

// Return whether the surface has the normal n at corner or edge k of the triangle.
GPUSIM_SHARED bool field_has_normal(const FieldScan& s, const FieldTriangle& t, int k, bool edge, const double* n) {
    const double* p = t.corner + 3 * k;
    const int column = t.column + field_step(t.half, k, false), row = t.row + field_step(t.half, k, true);
    if (edge) {
        const int last = k == 0 ? 2 : k - 1;
        // The contact may belong to a corner near the point.
        double along[3];
        subtract3(t.corner + (k == 2 ? 0 : 3 * k + 3), p, along);
        if (s.known > 0 && abs_(dot3(along, n)) > FIELD_TILT * norm3(along)) return false;
        return field_falls(s, p, n, t.column + field_opposite(t.half, k, false),
                           t.row + field_opposite(t.half, k, true))
            && field_falls(s, p, n, t.column + field_step(t.half, last, false),
                           t.row + field_step(t.half, last, true));
    }
    return field_falls(s, p, n, column + 1, row) && field_falls(s, p, n, column - 1, row)
        && field_falls(s, p, n, column, row + 1) && field_falls(s, p, n, column, row - 1)
        && field_falls(s, p, n, column + 1, row + 1) && field_falls(s, p, n, column - 1, row - 1);
}

// Return the height of the neighbor triangle's far corner above the triangle's plane, or
// -UNBOUNDED at the rim of the field.
GPUSIM_SHARED double field_rise(const FieldScan& s, const FieldTriangle& t, int k) {
    const int column = t.column + field_opposite(t.half, k, false), row = t.row + field_opposite(t.half, k, true);
    if (column < 0 || row < 0 || column >= s.columns || row >= s.rows) return -UNBOUNDED;
    double p[3];
    field_corner(s, column, row, p);
    return plane_gap(t, p);
}

GPUSIM_FN bool field_has_ridge(const FieldScan& s, const FieldTriangle& t) {
    for (int k = 0; k < 3; ++k)
        if (field_rise(s, t, k) < -FIELD_FLAT * (s.dx + s.dy)) return true;
    return false;
}

// Find the triangle above or below a point. Return false outside the field.
GPUSIM_SHARED bool field_at(const FieldScan& s, const double* p, FieldTriangle& t) {
    const double u = p[0] / s.dx + 0.5 * (s.columns - 1), v = p[1] / s.dy + 0.5 * (s.rows - 1);
    if (!(u >= 0.0 && v >= 0.0 && u <= s.columns - 1.0 && v <= s.rows - 1.0)) return false;
    const int column = int(min_(u, s.columns - 2.0)), row = int(min_(v, s.rows - 2.0));
    field_triangle(s, column, row, v - row > u - column ? 1 : 0, t);
    return true;
}

GPUSIM_SHARED bool field_covers(const FieldScan& s, const FieldTriangle& t, const double* p) {
    for (int k = 0; k < 3; ++k)
        if (field_weight(s, t, p, k) < -FIELD_INSIDE) return false;
    return true;
}

GPUSIM_FN void field_foot(const FieldTriangle& t, const double* p, double gap, double* foot) {
    for (int k = 0; k < 3; ++k) foot[k] = p[k] - gap * t.n[k];
}

// Return whether a foot is on or below the surface.
GPUSIM_SHARED bool field_contains(const FieldScan& s, const double* foot) {
    FieldTriangle t;
    return field_at(s, foot, t) && plane_gap(t, foot) <= FIELD_FLAT * (s.dx + s.dy);
}

GPUSIM_FN bool field_same_plane(const FieldScan& s, const FieldTriangle& t, const FieldTriangle& o) {
    double max_gap = 0.0;
    for (int k = 0; k < 3; ++k) max_gap = max_(max_gap, abs_(plane_gap(t, o.corner + 3 * k)));
    return max_gap <= 0.1 * FIELD_FLAT * (s.dx + s.dy);  // smaller than the tolerance of field_contains
}

// Classify the contact between the face of the triangle and the lowest point p of the shape. `gap` is the distance of p
// from the plane. A triangle straight above p has the contact. A triangle straight below p has the contact if the foot
// of p is on the triangle, or on or below the surface. A triangle in another plane has the contact if it contains the
// foot of p. Such a triangle is only a candidate if p is deep below it.
GPUSIM_SHARED int field_classify(const FieldScan& s, const FieldTriangle& t, const double* p, double gap) {
    const bool vertical = field_covers(s, t, p);
    if (vertical && !(gap > 0.0)) return FIELD_HIT;
    double foot[3];
    field_foot(t, p, gap, foot);
    const bool foot_inside = field_covers(s, t, foot);
    if (vertical) return foot_inside || field_contains(s, foot) ? FIELD_HIT : FIELD_MISS;
    FieldTriangle other;
    if (!foot_inside || (field_at(s, p, other) && field_same_plane(s, t, other))) return FIELD_MISS;
    return gap > -s.radius ? FIELD_HIT : FIELD_CANDIDATE;
}

// Return whether a foot is outside the triangle, beyond an edge that is a ridge.
GPUSIM_FN bool field_crosses_ridge(const FieldScan& s, const FieldTriangle& t, const double* foot) {
    for (int k = 0; k < 3; ++k)
        if (field_weight(s, t, foot, k == 0 ? 2 : k - 1) < -FIELD_INSIDE
            && field_rise(s, t, k) < -FIELD_FLAT * (s.dx + s.dy)) return true;
    return false;
}

// Compute the vector from the nearest point of the rim to a point. Return the edge. ``along`` is the
// position on the edge, 0 to 1.
GPUSIM_FN int field_from_rim(const FieldTriangle& t, const double* p, double* to, double* along) {
    int edge = 0;
    double min_square = UNBOUNDED;
    for (int k = 0; k < 3; ++k) {
        const double* from = t.corner + 3 * k;
        double e[3], d[3];
        subtract3(t.corner + (k == 2 ? 0 : 3 * k + 3), from, e);
        subtract3(p, from, d);
        const double fraction = clamped(dot3(d, e) / dot3(e, e), 0.0, 1.0);
        for (int c = 0; c < 3; ++c) d[c] = d[c] - fraction * e[c];
        if (!(dot3(d, d) < min_square)) continue;
        min_square = dot3(d, d);
        copy3(d, to);
        *along = fraction;
        edge = k;
    }
    return edge;
}

// Correct a contact whose foot is beyond a ridge. The gap becomes the distance from the nearest edge or corner
// (Ericson, Real-Time Collision Detection, 2005, 5.1.5). Return false if the new normal is not a normal of the surface.
GPUSIM_SHARED bool field_past_ridge(const FieldScan& s, const FieldTriangle& t, double* p, double* n, double* gap) {
    double foot[3], core[3], to[3], along;
    // The distance from the point straight down to the triangle exceeds the distance from the plane by at most gap
    // tan^2(slope) / 2.
    const double tie = FIELD_TIE * s.size, square = t.n[2] * t.n[2];
    if (0.5 * *gap * (1.0 - square) <= tie * square) return true;
    field_foot(t, p, *gap, foot);
    if (field_covers(s, t, foot) || field_contains(s, foot)) return true;
    for (int k = 0; k < 3; ++k) core[k] = p[k] + s.radius * n[k];
    const int edge = field_from_rim(t, core, to, &along);
    const double distance = norm3(to);
    if (distance - s.radius - *gap <= tie) return true;
    *gap = distance - s.radius;
    for (int k = 0; k < 3; ++k) {
        n[k] = to[k] / distance;
        p[k] = core[k] - s.radius * n[k];
    }
    return field_has_normal(s, t, along < 1.0 ? edge : (edge + 1) % 3, along > 0.0 && along < 1.0, n);
}
