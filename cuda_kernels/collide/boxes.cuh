// Box against box, by the separating axis test with 6 faces and 9 pairs of edges. For a face axis, the routine clips
// the incident face against the reference face. For an edge axis, two edges cross in one point. Resting boxes must keep
// the same axis from step to step. The gaps of two nearly parallel axes differ only by the square of the angle. A later
// axis replaces a nearly parallel earlier axis only if the gap of the later axis is greater by BOX_PREFER.
#pragma once
#include "box_polygons.cuh"
#include "convex.cuh"
#include "shape.cuh"

#define BOX_PREFER 1e-3     // relative to the size: required advantage of a nearly parallel axis
#define BOX_TIE 1e-9        // relative to the size: required advantage of any other axis
#define BOX_PARALLEL 0.99999 // cosine of 0.26 degrees
#define BOX_EDGE_SINE2 1e-14 // two edges with a smaller angle (square of the sine) define no axis
#define BOX_SNAP 1e-5       // relative to the face: a corner outside by less moves to the rim, without clipping
#define BOX_GRAZE 5e-4       // relative to the pair's size: maximum overlap of grazing boxes
#define BOX_GRAZE_THIN 0.02  // relative to the smallest half extent: maximum overlap of grazing boxes
#define BOX_EDGE_FEATURE 4608

struct BoxPair {
    double r[9], q[9], t[3], tb[3];  // q = |r|. Center of B relative to A, in A's axes (t) and in B's axes (tb)
    const double *a, *b;             // half extents
    double face_gap[6], size;
};
// Best separating axis, gap, and sine for edges. Axes 0 to 2 are faces of A, axes 3 to 5 are faces of B, and axis 6 + 3
// i + j is a pair of edges.
struct BoxAxis {
    int code;
    double gap, sine;
};

GPUSIM_FN bool box_faces_apart(const Shape& a, const Shape& b, double margin, BoxPair& p) {
    const double d[3] = {b.center[0] - a.center[0], b.center[1] - a.center[1], b.center[2] - a.center[2]};
    const double *m = a.rotation, *n = b.rotation;
    p.a = a.size;
    p.b = b.size;
    for (int i = 0; i < 3; ++i) {
        p.t[i] = m[i] * d[0] + m[3 + i] * d[1] + m[6 + i] * d[2];
        for (int j = 0; j < 3; ++j) {
            p.r[3 * i + j] = m[i] * n[j] + m[3 + i] * n[3 + j] + m[6 + i] * n[6 + j];
            p.q[3 * i + j] = abs_(p.r[3 * i + j]);
        }
        const double* q = p.q + 3 * i;
        p.face_gap[i] = abs_(p.t[i]) - (p.a[i] + (p.b[0] * q[0] + p.b[1] * q[1] + p.b[2] * q[2]));
        if (p.face_gap[i] > margin) return true;
    }
    for (int j = 0; j < 3; ++j) {
        const double *r = p.r + j, *q = p.q + j;
        p.tb[j] = r[0] * p.t[0] + r[3] * p.t[1] + r[6] * p.t[2];
        p.face_gap[3 + j] = abs_(p.tb[j]) - (p.b[j] + (p.a[0] * q[0] + p.a[1] * q[3] + p.a[2] * q[6]));
        if (p.face_gap[3 + j] > margin) return true;
    }
    p.size = p.a[0] + p.a[1] + p.a[2] + p.b[0] + p.b[1] + p.b[2];
    return false;
}

// Return the face with the largest gap. If gaps are equal, return the first face.
GPUSIM_FN int box_best_face(const BoxPair& p) {
    const double tie = BOX_TIE * p.size, prefer = BOX_PREFER * p.size;
    int i = 0, j = 0;
    for (int k = 1; k < 3; ++k) {
        if (p.face_gap[k] > p.face_gap[i] + tie) i = k;
        if (p.face_gap[3 + k] > p.face_gap[3 + j] + tie) j = k;
    }
    return p.face_gap[3 + j] > p.face_gap[i] + (p.q[3 * i + j] > BOX_PARALLEL ? prefer : tie) ? 3 + j : i;
}

// Test one pair of edges. I and J are the axes of the edges. I1, I2 and J1, J2 are the next axes in cyclic order.
#define BOX_EDGES(I, I1, I2, J, J1, J2)                                                                              \
    {                                                                                                                \
        const double s = abs_(p.t[I2] * p.r[3 * I1 + J] - p.t[I1] * p.r[3 * I2 + J])                            \
                       - ((p.a[I1] * p.q[3 * I2 + J] + p.a[I2] * p.q[3 * I1 + J])                                    \
                          + (p.b[J1] * p.q[3 * I + J2] + p.b[J2] * p.q[3 * I + J1]));                                \
        if (s > bar) {                                                                                               \
            const double sine2 = p.q[3 * I1 + J] * p.q[3 * I1 + J] + p.q[3 * I2 + J] * p.q[3 * I2 + J];              \
            if (sine2 > BOX_EDGE_SINE2) {                                                                            \
                const double sine = sqrt_(sine2);                                                              \
                const double gap = s / sine;                                                                         \
                if (gap > margin) return true;                                                                       \
                if (gap > best.gap) {                                                                                \
                    best.code = 6 + 3 * I + J;                                                                       \
                    best.gap = gap;                                                                                  \
                    best.sine = sine;                                                                                \
                    bar = min_(gap, 0.0);                                                                         \
                }                                                                                                    \
            }                                                                                                        \
        }                                                                                                            \
    }

// Return whether an edge axis separates the boxes by more than the margin. Otherwise update `best`. To save a square
// root, the code skips axes that cannot be better.
GPUSIM_FN bool box_edges_apart(const BoxPair& p, double margin, BoxAxis& best) {
    double bar = min_(best.gap, 0.0);
    BOX_EDGES(0, 1, 2, 0, 1, 2) BOX_EDGES(0, 1, 2, 1, 2, 0) BOX_EDGES(0, 1, 2, 2, 0, 1)
    BOX_EDGES(1, 2, 0, 0, 1, 2) BOX_EDGES(1, 2, 0, 1, 2, 0) BOX_EDGES(1, 2, 0, 2, 0, 1)
    BOX_EDGES(2, 0, 1, 0, 1, 2) BOX_EDGES(2, 0, 1, 1, 2, 0) BOX_EDGES(2, 0, 1, 2, 0, 1)
    return false;
}

// Compute the unit normal from A to B of the edge axis i, j, in A's axes.
GPUSIM_FN void box_edge_normal(const BoxPair& p, int i, int j, double sine, double* n) {
    const int i1 = i == 2 ? 0 : i + 1, i2 = 3 - i - i1;
    n[i] = 0.0;
    n[i1] = -p.r[3 * i2 + j] / sine;
    n[i2] = p.r[3 * i1 + j] / sine;
    if (dot3(n, p.t) < 0.0) {
        n[i1] = -n[i1];
        n[i2] = -n[i2];
    }
}

// Return whether the best edge axis is better than the best face.
GPUSIM_FN bool box_edge_is_better(const BoxPair& p, int face, const BoxAxis& edge, const double* n) {
    if (!(edge.gap > p.face_gap[face] + BOX_TIE * p.size)) return false;
    if (edge.gap > p.face_gap[face] + BOX_PREFER * p.size) return true;
    const int k = face < 3 ? face : face - 3;
    const double cosine = face < 3 ? n[k] : n[0] * p.r[k] + n[1] * p.r[3 + k] + n[2] * p.r[6 + k];
    return abs_(cosine) < BOX_PARALLEL;
}

// Compute the contact point of edge i of A and edge j of B. Return 0 if the edges do not cross.
GPUSIM_SHARED int box_edge_contact(const Shape& a, const BoxPair& p, const BoxAxis& axis, const double* n,
                                   Manifold& out) {
    const int i = (axis.code - 6) / 3, j = axis.code - 6 - 3 * i;
    double on_a[3], on_b[3], line[3];
    int bits = 0;
    for (int k = 0; k < 3; ++k) {
        on_a[k] = k == i ? 0.0 : (n[k] < 0.0 ? -p.a[k] : p.a[k]);
        if (k != i) bits = 2 * bits + (n[k] < 0.0 ? 1 : 0);
        on_b[k] = p.t[k];
        line[k] = p.r[3 * k + j];
    }
    for (int k = 0; k < 3; ++k) {
        if (k == j) continue;
        const bool up = n[0] * p.r[k] + n[1] * p.r[3 + k] + n[2] * p.r[6 + k] < 0.0;
        const double s = up ? p.b[k] : -p.b[k];
        bits = 2 * bits + (up ? 1 : 0);
        for (int m = 0; m < 3; ++m) on_b[m] = on_b[m] + s * p.r[3 * m + k];
    }
    // Nearest points of the lines on_a + x e_i and on_b + y line.
    const double d[3] = {on_b[0] - on_a[0], on_b[1] - on_a[1], on_b[2] - on_a[2]};
    const double c = line[i], dl = dot3(d, line), sine2 = axis.sine * axis.sine;
    double x = (d[i] - c * dl) / sine2, y = (c * d[i] - dl) / sine2;
    const double slack = BOX_TIE * p.size;
    if (axis.gap > 0.0 && (abs_(x) > p.a[i] + slack || abs_(y) > p.b[j] + slack)) return 0;
    x = clamped(x, -p.a[i], p.a[i]);
    y = clamped(y, -p.b[j], p.b[j]);
    on_a[i] = x;
    // Clamping may move the two points apart sideways, so use the midpoint.
    for (int k = 0; k < 3; ++k) on_b[k] = on_b[k] + y * line[k];
    const double across = n[0] * (on_b[0] - on_a[0]) + n[1] * (on_b[1] - on_a[1]) + n[2] * (on_b[2] - on_a[2]);
    double middle[3];
    for (int k = 0; k < 3; ++k) middle[k] = 0.5 * (on_a[k] + on_b[k]);
    double world[3];
    rotate3(a.rotation, middle, world);
    rotate3(a.rotation, n, out.normal);
    for (int k = 0; k < 3; ++k) {
        out.a[k] = (a.center[k] + world[k]) - (0.5 * across) * out.normal[k];
        out.b[k] = (a.center[k] + world[k]) + (0.5 * across) * out.normal[k];
    }
    out.feature[0] = BOX_EDGE_FEATURE + 16 * (axis.code - 6) + bits;
    return 1;
}

// Find the corners of the overlap of both faces. m[3*i + j] is the cosine between axis i of the reference box and axis
// j of the incident box. t is the vector between the centers, in the axes of the reference box. `separation` is the gap
// along the normal. Return the number of points, or 0 if the faces do not overlap or all gaps are too large.
GPUSIM_SHARED int box_face_contact(const Shape& ref, const Shape& inc, const double* m, const double* t, int k,
                                   bool flipped, double separation, double margin, Manifold& out) {
    const double *h = ref.size, *g = inc.size;
    const int u = k == 2 ? 0 : k + 1, v = 3 - k - u;
    const double s = t[k] < 0.0 ? -1.0 : 1.0;
    int j = 0;
    for (int i = 1; i < 3; ++i)
        if (abs_(m[3 * k + i]) > abs_(m[3 * k + j]) + BOX_DEEPER) j = i;
    const int j1 = j == 2 ? 0 : j + 1, j2 = 3 - j - j1;
    const bool up = s * m[3 * k + j] < 0.0;
    const double q = up ? g[j] : -g[j];
    const double cx = t[u] + q * m[3 * u + j], cy = t[v] + q * m[3 * v + j];
    const double level = s * (t[k] + q * m[3 * k + j]) - h[k];
    const double slope = -s / m[3 * k + j], slope_x = slope * m[3 * u + j], slope_y = slope * m[3 * v + j];
    const double px = g[j1] * m[3 * u + j1], py = g[j1] * m[3 * v + j1];
    const double qx = g[j2] * m[3 * u + j2], qy = g[j2] * m[3 * v + j2];
    const double snap = BOX_SNAP * (h[u] + h[v]);
    const double limit_x = h[u] + snap, limit_y = h[v] + snap;
    const double extent_x = abs_(px) + abs_(qx), extent_y = abs_(py) + abs_(qy);
    out.count = 0;
    if (abs_(cx) - extent_x > limit_x || abs_(cy) - extent_y > limit_y) return 0;
    BoxPolygon w;
    w.n = 4;
    w.x[0] = cx + px + qx; w.x[1] = cx - px + qx; w.x[2] = cx - px - qx; w.x[3] = cx + px - qx;
    w.y[0] = cy + py + qy; w.y[1] = cy - py + qy; w.y[2] = cy - py - qy; w.y[3] = cy + py - qy;
    for (int i = 0; i < 4; ++i) w.edge[i] = i;
    if (cx + extent_x > limit_x) box_clip(w, false, 1.0, limit_x, 4);
    if (extent_x - cx > limit_x) box_clip(w, false, -1.0, limit_x, 5);
    if (cy + extent_y > limit_y) box_clip(w, true, 1.0, limit_y, 6);
    if (extent_y - cy > limit_y) box_clip(w, true, -1.0, limit_y, 7);
    double gap[BOX_POLYGON];
    double min_gap = 1e300;
    int feature[BOX_POLYGON], n = 0;
    const int base = ((2 * (flipped ? k + 3 : k) + (s < 0.0 ? 1 : 0)) * 6 + 2 * j + (up ? 1 : 0)) * 64;
    for (int i = 0; i < w.n; ++i) {
        const double x = clamped(w.x[i], -h[u], h[u]), y = clamped(w.y[i], -h[v], h[v]);
        const double z = level + (slope_x * (w.x[i] - cx) + slope_y * (w.y[i] - cy));
        if (z > margin) continue;
        const int before = w.edge[i == 0 ? w.n - 1 : i - 1], after = w.edge[i];
        feature[n] = base + (before < after ? 8 * before + after : 8 * after + before);
        w.x[n] = x;
        w.y[n] = y;
        gap[n++] = z;
        min_gap = z < min_gap ? z : min_gap;
    }
    if (separation > 0.0 && min_gap > separation + BOX_PREFER * (h[0] + h[1] + h[2] + g[0] + g[1] + g[2])) return 0;
    int pick[4] = {0, 1, 2, 3};
    if (n > 4) box_spread(w, gap, n, h[u] + h[v], pick);
    out.count = n > 4 ? 4 : n;
    const double* e = ref.rotation;
    const double sign = flipped ? -1.0 : 1.0;
    double normal[3];
    for (int i = 0; i < 3; ++i) {
        normal[i] = s * e[3 * i + k];
        out.normal[i] = sign * normal[i];
    }
    double *on_ref = flipped ? out.b : out.a, *on_inc = flipped ? out.a : out.b;
    for (int c = 0; c < out.count; ++c) {
        const int o = pick[c];
        for (int i = 0; i < 3; ++i) {
            const double x = ref.center[i] + ((h[k] * normal[i] + w.x[o] * e[3 * i + u]) + w.y[o] * e[3 * i + v]);
            on_ref[3 * c + i] = x;
            on_inc[3 * c + i] = x + gap[o] * normal[i];
        }
        out.feature[c] = feature[o];
    }
    return out.count;
}

// Return whether boxes barely overlap along two axes. For example, a box that slides over several floor boxes sinks in
// slightly. The sliding box must not collide with the side of the next floor box.
GPUSIM_FN bool box_grazes(const BoxPair& p, int face) {
    double thin = p.a[0];
    for (int k = 0; k < 3; ++k) thin = min_(thin, min_(p.a[k], p.b[k]));
    const double max_overlap = min_(BOX_GRAZE * p.size, BOX_GRAZE_THIN * thin);
    if (p.face_gap[face] < -max_overlap) return false;
    for (int k = 0; k < 6; ++k) {
        if (k == face || abs_(p.face_gap[k]) > max_overlap) continue;
        const bool same = (k < 3) == (face < 3);
        if (same || p.q[k < 3 ? 3 * k + face - 3 : 3 * face + k - 3] < 0.5) return true;
    }
    return false;
}
// Like box_box, but return -1 if the boxes are apart and their nearest features are not on the chosen faces (rare).
GPUSIM_SHARED int box_box_facing(const Shape& a, const Shape& b, double margin, Manifold& out) {
    out.count = 0;
    BoxPair p;
    if (box_faces_apart(a, b, margin, p)) return 0;
    const int face = box_best_face(p);
    if (box_grazes(p, face)) return 0;
    BoxAxis edge = {-1, p.face_gap[face], 1.0};
    if (box_edges_apart(p, margin, edge)) return 0;
    if (edge.code >= 0) {
        double n[3];
        const int i = (edge.code - 6) / 3;
        box_edge_normal(p, i, edge.code - 6 - 3 * i, edge.sine, n);
        if (box_edge_is_better(p, face, edge, n)) {
            out.count = box_edge_contact(a, p, edge, n, out);
            return out.count > 0 ? 1 : -1;
        }
    }
    int count;
    if (face < 3) {
        count = box_face_contact(a, b, p.r, p.t, face, false, p.face_gap[face], margin, out);
    } else {
        double m[9], t[3];
        for (int i = 0; i < 3; ++i) {
            t[i] = -p.tb[i];
            for (int j = 0; j < 3; ++j) m[3 * i + j] = p.r[3 * j + i];
        }
        count = box_face_contact(b, a, m, t, face - 3, true, p.face_gap[face], margin, out);
    }
    return count > 0 ? count : -1;
}

GPUSIM_FN int box_box(const Shape& a, const Shape& b, double margin, Manifold& out) {
    const int count = box_box_facing(a, b, margin, out);
    if (count >= 0) return count;
    double guess[4] = {0.0, 0.0, 0.0, 0.0};
    return convex_convex(a, b, margin, guess, out);
}
