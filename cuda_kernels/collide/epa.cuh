// Penetration of two convex cores: the direction along which the least motion parts them, by an expanding polytope
// (van den Bergen 2001).
//
// The polytope lies inside the set of differences a - b. Its face nearest to the origin (signed: the origin may still
// be outside) moves out to the set's own boundary until it is there, within an accuracy. Few cores need more points than
// there is room for; then the best direction so far does.
#pragma once
#include "gjk.cuh"

#define EPA_POINTS 32
#define EPA_FACES 60    // 2 points - 4
#define EPA_EDGES 40    // of the hole that a new point makes
#define EPA_THIN 1e-9   // a simplex of this height, relative to the shapes, is flat

struct Polytope {
    int points, faces;
    double w[3 * EPA_POINTS];
    double normal[3 * EPA_FACES], distance[EPA_FACES];  // outward; a face of no area is never chosen
    unsigned char corner[3 * EPA_FACES];
};

GPUSIM_FN void add_face(Polytope& t, int i, int j, int k) {
    double e[3], f[3];
    double* n = t.normal + 3 * t.faces;
    const double* p = t.w + 3 * i;
    subtract3(t.w + 3 * j, p, e);
    subtract3(t.w + 3 * k, p, f);
    cross3(e, f, n);
    const double length = norm3(n);
    const bool flat = !(length > 1e-12 * (dot3(e, e) + dot3(f, f)));
    for (int c = 0; c < 3; ++c) n[c] = flat ? 0.0 : n[c] / length;
    t.distance[t.faces] = flat ? UNBOUNDED : dot3(n, p);
    t.corner[3 * t.faces] = (unsigned char)i;
    t.corner[3 * t.faces + 1] = (unsigned char)j;
    t.corner[3 * t.faces + 2] = (unsigned char)k;
    t.faces += 1;
}

// A unit vector square to d, which need not be one.
GPUSIM_FN void square_to(const double* d, double* out) {
    const double x = magnitude(d[0]), y = magnitude(d[1]), z = magnitude(d[2]);
    const int k = x <= y && x <= z ? 0 : (y <= z ? 1 : 2);
    const double axis[3] = {k == 0 ? 1.0 : 0.0, k == 1 ? 1.0 : 0.0, k == 2 ? 1.0 : 0.0};
    cross3(d, axis, out);
    const double length = norm3(out);
    for (int c = 0; c < 3; ++c) out[c] = out[c] / length;
}

// Height of w over the point, line or plane of the first points of the polytope, squared (plane: signed, not squared).
GPUSIM_FN double height_over(const Polytope& t, const double* w) {
    double g[3], e[3], f[3], n[3];
    subtract3(w, t.w, g);
    if (t.points == 1) return dot3(g, g);
    subtract3(t.w + 3, t.w, e);
    if (t.points == 2) {
        cross3(e, g, n);
        return dot3(n, n) / dot3(e, e);
    }
    subtract3(t.w + 6, t.w, f);
    cross3(e, f, n);
    return dot3(n, g) / norm3(n);
}

// Directions square to the first points of the polytope: the k-th of those to try for the next point.
GPUSIM_FN bool direction_from(const Polytope& t, int k, double* d) {
    double e[3], f[3], u[3];
    for (int c = 0; c < 3; ++c) d[c] = c == k / 2 ? 1.0 : 0.0;
    if (t.points == 1) {
        if (k >= 6) return false;
    } else if (t.points == 2) {
        if (k >= 4) return false;
        subtract3(t.w + 3, t.w, e);
        square_to(e, u);
        cross3(e, u, f);
        const double length = norm3(f);
        for (int c = 0; c < 3; ++c) d[c] = k < 2 ? u[c] : f[c] / length;
    } else {
        if (k >= 2) return false;
        subtract3(t.w + 3, t.w, e);
        subtract3(t.w + 6, t.w, f);
        cross3(e, f, u);
        const double length = norm3(u);
        for (int c = 0; c < 3; ++c) d[c] = u[c] / length;
    }
    if (k % 2 == 1)
        for (int c = 0; c < 3; ++c) d[c] = -d[c];
    return true;
}

// One more point, as far as possible from the first ones; false where all differences lie in their line or plane, then d
// is square to it.
GPUSIM_SHARED bool add_spanning_point(const Shape& a, const Shape& b, const double* offset, double thin, Polytope& t,
                                      double* d) {
    double most = thin, w[3], point[3], trial[3];
    bool found = false;
    for (int k = 0; direction_from(t, k, trial); ++k) {
        difference_support(a, b, offset, trial, w, point);
        double height = height_over(t, w);
        height = t.points == 3 ? magnitude(height) : square_root(height);
        if (k == 0) copy3(trial, d);
        if (height > most) {
            most = height;
            found = true;
            copy3(w, t.w + 3 * t.points);
        }
    }
    t.points += found ? 1 : 0;
    return found;
}

// A tetrahedron, of the simplex's points where they do; false where the differences are flat: n is the flat's normal.
GPUSIM_SHARED bool span(const Shape& a, const Shape& b, const double* offset, double extent, const Simplex& s, Polytope& t,
                        double* n) {
    const double thin = EPA_THIN * extent;
    t.points = t.faces = 0;
    for (int i = 0; i < s.count; ++i) {
        const double* w = s.w + 3 * i;
        const double height = t.points == 0 ? extent : magnitude(height_over(t, w));
        const double needed = 1e3 * thin;  // a better point than a bad one is soon found
        if (height > (t.points == 0 || t.points == 3 ? needed : needed * needed)) copy3(w, t.w + 3 * t.points++);
    }
    while (t.points < 4)
        if (!add_spanning_point(a, b, offset, thin, t, n)) return false;
    double e[3], f[3], g[3], m[3];
    subtract3(t.w + 3, t.w, e);
    subtract3(t.w + 6, t.w, f);
    subtract3(t.w + 9, t.w, g);
    cross3(e, f, m);
    const int j = dot3(m, g) < 0.0 ? 1 : 2, k = 3 - j;  // the fourth point lies below 0, j, k
    add_face(t, 0, j, k);
    add_face(t, j, 0, 3);
    add_face(t, k, j, 3);
    add_face(t, 0, k, 3);
    return true;
}

// Edge i, j of a face that goes: in the rim of the hole, unless the face on its other side goes too. The number of edges
// then; -1 where there is no room.
GPUSIM_FN int toggle_edge(unsigned char* rim, int edges, unsigned char i, unsigned char j) {
    for (int other = 0; other < edges; ++other) {
        if (rim[2 * other] != j || rim[2 * other + 1] != i) continue;
        rim[2 * other] = rim[2 * edges - 2];
        rim[2 * other + 1] = rim[2 * edges - 1];
        return edges - 1;
    }
    if (edges == EPA_EDGES) return -1;
    rim[2 * edges] = i;
    rim[2 * edges + 1] = j;
    return edges + 1;
}

// Put a point outside of a face into the polytope: the faces that see it go, the rim of the hole gets new ones. False
// where there is no room.
GPUSIM_SHARED bool expand(Polytope& t, int nearest, const double* w, double slack) {
    unsigned char rim[2 * EPA_EDGES];
    int edges = 0;
    if (t.points >= EPA_POINTS) return false;
    for (int f = t.faces - 1; f >= 0; --f) {
        if (f != nearest && !(dot3(t.normal + 3 * f, w) - t.distance[f] > slack)) continue;
        for (int c = 0; c < 3; ++c) {
            edges = toggle_edge(rim, edges, t.corner[3 * f + c], t.corner[3 * f + (c + 1) % 3]);
            if (edges < 0) return false;
        }
        --t.faces;
        for (int c = 0; c < 3; ++c) {
            t.normal[3 * f + c] = t.normal[3 * t.faces + c];
            t.corner[3 * f + c] = t.corner[3 * t.faces + c];
        }
        t.distance[f] = t.distance[t.faces];
    }
    if (t.faces + edges > EPA_FACES) return false;
    const int point = t.points++;
    copy3(w, t.w + 3 * point);
    for (int e = 0; e < edges; ++e) add_face(t, rim[2 * e], rim[2 * e + 1], point);
    return true;
}

// n: the direction from A to B along which b has to move least to come free; s: from gjk. The least motion, within
// accuracy times the extent of the shapes where the polytope has room enough, and never too small.
GPUSIM_SHARED double epa(const Shape& a, const Shape& b, const double* offset, double extent, double accuracy,
                         const Simplex& s, double* n) {
    Polytope t;
    n[0] = n[1] = 0.0;
    n[2] = 1.0;
    if (!span(a, b, offset, extent, s, t, n)) {
        // cores without a volume, such as two segments: their common plane's normal, towards b
        if (dot3(n, offset) < 0.0)
            for (int k = 0; k < 3; ++k) n[k] = -n[k];
        return depth_along(a, b, offset, n);
    }
    double depth = UNBOUNDED;
    for (;;) {
        int nearest = 0;
        for (int f = 1; f < t.faces; ++f)
            if (t.distance[f] < t.distance[nearest]) nearest = f;
        double w[3], point[3];
        const double* m = t.normal + 3 * nearest;
        const double distance = t.distance[nearest];
        if (distance >= UNBOUNDED) break;  // nothing but faces without area
        difference_support(a, b, offset, m, w, point);
        const double reach = dot3(m, w);
        if (reach < depth) {
            depth = reach;
            copy3(m, n);
        }
        if (depth - distance <= accuracy * extent || !expand(t, nearest, w, 1e-13 * extent)) break;
    }
    return depth;
}
