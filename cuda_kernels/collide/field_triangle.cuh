// The triangles of a height field, in the field's frame: places on them, normals that the surface has, and where the feet
// of points above it are.
#pragma once
#include "convex.cuh"
#include "shape.cuh"
#include "support.cuh"

#define FIELD_CONE 0.985      // cosine of 10 degrees: contacts with normals closer than this make one manifold
#define FIELD_NEAR 0.9963     // of 5 degrees: normals that are all this near to one of them make one manifold
#define FIELD_LOWEST 1e-3     // of the size: how far above its lowest point a shape may touch with a further normal
#define FIELD_STEP 2e-4       // of the size: ground that rises by less in front of a shape does not block it
#define FIELD_TIE 1e-6        // of the shape's size: gaps and places that differ by less count as equal
#define FIELD_FLAT 1e-6       // of a spacing: how far the next triangle must fall away to make a ridge
#define FIELD_LEAN 1e-3       // sine by which a normal may miss the ones that the surface has
#define FIELD_UPRIGHT 0.9999995  // cosine of that
#define FIELD_INSIDE 1e-9     // share of a triangle by which a point over its rim still is over it
#define FIELD_CORNERS (FACE_CORNERS + 4)
#define FIELD_SUPPORT 480     // features: corners of the shape below, cells from FIELD_CELLS
#define FIELD_CELLS 512
#define FIELD_FAR 0           // what a triangle's face says of the shape: out of reach,
#define FIELD_MET 1           // the face has its nearest point,
#define FIELD_MISSED 2        // another triangle may, or a ridge,
#define FIELD_ASIDE 3         // or the face, if the way out through it is the shortest

struct FieldPoint {
    double b[3], n[3], gap, score;
    int feature;
    bool found;
};

// What is looked for: the deepest contact whose normal is not near those of the first `known` seeds (best[4]), or, with
// `spread`, those nearest to the normal of seed number `known` that lie farthest out in four directions (best[0..3]). Of more than one
// normal (`most`), `others` says whether another search could find one: whether some differ from the first one seen.
struct FieldScan {
    const Shape *field, *body;  // body: in the field's frame
    int columns, rows, first_column, last_column, first_row, last_row;
    double dx, dy, margin, radius, size, low, depth;
    int known, most;
    bool spread, seen, others;
    double first[3], along[3], across[3], weight;
    FieldPoint best[5], seeds[MANIFOLDS];
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

// Whether the surface falls away from a point of it towards the corner (column, row), seen along n. True past the rim.
GPUSIM_FN bool field_falls(const FieldScan& s, const double* from, const double* n, int column, int row) {
    if (column < 0 || row < 0 || column >= s.columns || row >= s.rows) return true;
    double to[3];
    field_corner(s, column, row, to);
    subtract3(to, from, to);
    return dot3(to, n) <= FIELD_LEAN * norm3(to);
}

// Whether n is a normal that the surface has at corner or edge k of the triangle.
GPUSIM_SHARED bool field_has_normal(const FieldScan& s, const FieldTriangle& t, int k, bool edge, const double* n) {
    const double* p = t.corner + 3 * k;
    const int column = t.column + field_step(t.half, k, false), row = t.row + field_step(t.half, k, true);
    if (edge) {
        const int last = k == 0 ? 2 : k - 1;
        // Next to a corner, what looks like a point of the edge may be the corner's.
        double along[3];
        subtract3(t.corner + (k == 2 ? 0 : 3 * k + 3), p, along);
        if (s.known > 0 && magnitude(dot3(along, n)) > FIELD_LEAN * norm3(along)) return false;
        return field_falls(s, p, n, t.column + field_beyond(t.half, k, false), t.row + field_beyond(t.half, k, true))
            && field_falls(s, p, n, t.column + field_step(t.half, last, false),
                           t.row + field_step(t.half, last, true));
    }
    return field_falls(s, p, n, column + 1, row) && field_falls(s, p, n, column - 1, row)
        && field_falls(s, p, n, column, row + 1) && field_falls(s, p, n, column, row - 1)
        && field_falls(s, p, n, column + 1, row + 1) && field_falls(s, p, n, column - 1, row - 1);
}

// How high the far corner beyond edge k lies over the triangle's plane; without a bound below it at the field's rim.
GPUSIM_SHARED double field_rise(const FieldScan& s, const FieldTriangle& t, int k) {
    const int column = t.column + field_beyond(t.half, k, false), row = t.row + field_beyond(t.half, k, true);
    if (column < 0 || row < 0 || column >= s.columns || row >= s.rows) return -UNBOUNDED;
    double p[3];
    field_corner(s, column, row, p);
    return plane_gap(t, p);
}

// Whether an edge of the triangle is a ridge, or the rim of the field.
GPUSIM_FN bool field_has_ridge(const FieldScan& s, const FieldTriangle& t) {
    for (int k = 0; k < 3; ++k)
        if (field_rise(s, t, k) < -FIELD_FLAT * (s.dx + s.dy)) return true;
    return false;
}

// The triangle over or under a point; false beside the field.
GPUSIM_SHARED bool field_at(const FieldScan& s, const double* p, FieldTriangle& t) {
    const double u = p[0] / s.dx + 0.5 * (s.columns - 1), v = p[1] / s.dy + 0.5 * (s.rows - 1);
    if (!(u >= 0.0 && v >= 0.0 && u <= s.columns - 1.0 && v <= s.rows - 1.0)) return false;
    const int column = int(smaller(u, s.columns - 2.0)), row = int(smaller(v, s.rows - 2.0));
    field_triangle(s, column, row, v - row > u - column ? 1 : 0, t);
    return true;
}

GPUSIM_SHARED bool field_covers(const FieldScan& s, const FieldTriangle& t, const double* p) {
    for (int k = 0; k < 3; ++k)
        if (field_share(s, t, p, k) < -FIELD_INSIDE) return false;
    return true;
}

// The point of the triangle's plane nearest to a point that is `gap` over it.
GPUSIM_FN void field_foot(const FieldTriangle& t, const double* p, double gap, double* foot) {
    for (int k = 0; k < 3; ++k) foot[k] = p[k] - gap * t.n[k];
}

// Whether a foot lies on the surface or in the ground: then the surface is no farther away than the foot is.
GPUSIM_SHARED bool field_holds(const FieldScan& s, const double* foot) {
    FieldTriangle t;
    return field_at(s, foot, t) && plane_gap(t, foot) <= FIELD_FLAT * (s.dx + s.dy);
}

GPUSIM_FN bool field_same_plane(const FieldScan& s, const FieldTriangle& t, const FieldTriangle& o) {
    double most = 0.0;
    for (int k = 0; k < 3; ++k) most = larger(most, magnitude(plane_gap(t, o.corner + 3 * k)));
    return most <= 0.1 * FIELD_FLAT * (s.dx + s.dy);  // well within what field_holds lets pass
}

// Whether a point of the shape, `gap` over the triangle's plane, is met by the triangle's face. A point below the surface
// is met straight up. What is above it (a core too) is as far from the surface as its foot is from it, if that is on the
// surface: so it is on the triangle, but within a plane the triangle straight under the point goes first. A foot past a
// ridge is in the air, and the surface farther away than it. A point below the surface whose way out through the
// triangle is not straight up is met only if no other way is shorter.
GPUSIM_SHARED int field_meets(const FieldScan& s, const FieldTriangle& t, const double* p, double gap) {
    const bool straight = field_covers(s, t, p);
    if (straight && !(gap > 0.0)) return FIELD_MET;
    double foot[3];
    field_foot(t, p, gap, foot);
    const bool under = field_covers(s, t, foot);
    if (straight) return under || field_holds(s, foot) ? FIELD_MET : FIELD_MISSED;
    FieldTriangle other;
    if (!under || (field_at(s, p, other) && field_same_plane(s, t, other))) return FIELD_MISSED;
    return gap > -s.radius ? FIELD_MET : FIELD_ASIDE;
}

// Whether a foot lies beyond an edge of the triangle that is a ridge.
GPUSIM_FN bool field_crosses_ridge(const FieldScan& s, const FieldTriangle& t, const double* foot) {
    for (int k = 0; k < 3; ++k)
        if (field_share(s, t, foot, k == 0 ? 2 : k - 1) < -FIELD_INSIDE
            && field_rise(s, t, k) < -FIELD_FLAT * (s.dx + s.dy)) return true;
    return false;
}

// From the point of the triangle's rim that is nearest to a point, to this. Its edge, and where it is on it, from 0 to 1.
GPUSIM_FN int field_from_rim(const FieldTriangle& t, const double* p, double* to, double* along) {
    int edge = 0;
    double least = UNBOUNDED;
    for (int k = 0; k < 3; ++k) {
        const double* from = t.corner + 3 * k;
        double e[3], d[3];
        subtract3(t.corner + (k == 2 ? 0 : 3 * k + 3), from, e);
        subtract3(p, from, d);
        const double share = clamped(dot3(d, e) / dot3(e, e), 0.0, 1.0);
        for (int c = 0; c < 3; ++c) d[c] = d[c] - share * e[c];
        if (!(dot3(d, d) < least)) continue;
        least = dot3(d, d);
        copy3(d, to);
        *along = share;
        edge = k;
    }
    return edge;
}

// A point p straight over the triangle whose foot lies past a ridge is farther from the surface than from the triangle's
// plane: it is measured from the edge or corner that is nearest to it (Ericson, Real-Time Collision Detection, 2005,
// 5.1.5). p, n, gap: of the shape's surface, in and out. False where the surface has no such normal there: something else
// is nearer to the point.
GPUSIM_SHARED bool field_past_ridge(const FieldScan& s, const FieldTriangle& t, double* p, double* n, double* gap) {
    double foot[3], core[3], to[3], along;
    // The triangle straight under the point is farther away than its plane by gap tan^2 / 2 of the slope at most.
    const double tie = FIELD_TIE * s.size, square = t.n[2] * t.n[2];
    if (0.5 * *gap * (1.0 - square) <= tie * square) return true;
    field_foot(t, p, *gap, foot);
    if (field_covers(s, t, foot) || field_holds(s, foot)) return true;
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
