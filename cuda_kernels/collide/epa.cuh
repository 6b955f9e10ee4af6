// Penetration depth of two convex cores, by the expanding polytope algorithm (van den Bergen 2001). The polytope is
// inside the Minkowski difference. In each iteration, the face nearest to the origin moves outward, until the face
// reaches the boundary. Distances are signed, because the origin may still be outside the polytope. If the capacity
// does not suffice, the result is the best direction so far.
#pragma once
#include "gjk.cuh"

#define EPA_POINTS 32
#define EPA_FACES 60    // 2 EPA_POINTS - 4
#define EPA_EDGES 40    // edges of the hole around a new point
#define EPA_THIN 1e-9   // a simplex of this height, relative to the shapes, is flat

struct Polytope {
    int points, faces;
    double w[3 * EPA_POINTS];
    double normal[3 * EPA_FACES], distance[EPA_FACES];  // outward normals. The code never selects a face without area
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

// Compute a unit vector perpendicular to d. d can have any length.
GPUSIM_FN void perpendicular_to(const double* d, double* out) {
    const double x = abs_(d[0]), y = abs_(d[1]), z = abs_(d[2]);
    const int k = x <= y && x <= z ? 0 : (y <= z ? 1 : 2);
    const double axis[3] = {k == 0 ? 1.0 : 0.0, k == 1 ? 1.0 : 0.0, k == 2 ? 1.0 : 0.0};
    cross3(d, axis, out);
    const double length = norm3(out);
    for (int c = 0; c < 3; ++c) out[c] = out[c] / length;
}

// Return the distance of w from the first points of the polytope. The distance is squared for a point or line, and
// signed for a plane.
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

// Get the k-th search direction for the next point, perpendicular to the span of the first points. Return false after
// the last direction.
GPUSIM_FN bool direction_from(const Polytope& t, int k, double* d) {
    double e[3], f[3], u[3];
    for (int c = 0; c < 3; ++c) d[c] = c == k / 2 ? 1.0 : 0.0;
    if (t.points == 1) {
        if (k >= 6) return false;
    } else if (t.points == 2) {
        if (k >= 4) return false;
        subtract3(t.w + 3, t.w, e);
        perpendicular_to(e, u);
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

// Add the point that is farthest from the span of the first points. If the Minkowski difference is flat, return false.
// d is then perpendicular to the Minkowski difference.
GPUSIM_SHARED bool add_spanning_point(const Shape& a, const Shape& b, const double* offset, double thin, Polytope& t,
                                      double* d) {
    double max_height = thin, w[3], point[3], trial[3];
    bool found = false;
    for (int k = 0; direction_from(t, k, trial); ++k) {
        difference_support(a, b, offset, trial, w, point);
        double height = height_over(t, w);
        height = t.points == 3 ? abs_(height) : sqrt_(height);
        if (k == 0) copy3(trial, d);
        if (height > max_height) {
            max_height = height;
            found = true;
            copy3(w, t.w + 3 * t.points);
        }
    }
    t.points += found ? 1 : 0;
    return found;
}

// Find a tetrahedron, from the points of the simplex if possible. Return false if the Minkowski
// difference is flat, with normal n.
GPUSIM_SHARED bool make_tetrahedron(const Shape& a, const Shape& b, const double* offset, double extent,
                                    const Simplex& s, Polytope& t, double* n) {
    const double thin = EPA_THIN * extent;
    t.points = t.faces = 0;
    for (int i = 0; i < s.count; ++i) {
        const double* w = s.w + 3 * i;
        const double height = t.points == 0 ? extent : abs_(height_over(t, w));
        const double needed = 1e3 * thin;  // a better point is easy to find
        if (height > (t.points == 0 || t.points == 3 ? needed : needed * needed)) copy3(w, t.w + 3 * t.points++);
    }
    while (t.points < 4)
        if (!add_spanning_point(a, b, offset, thin, t, n)) return false;
    double e[3], f[3], g[3], m[3];
    subtract3(t.w + 3, t.w, e);
    subtract3(t.w + 6, t.w, f);
    subtract3(t.w + 9, t.w, g);
    cross3(e, f, m);
    const int j = dot3(m, g) < 0.0 ? 1 : 2, k = 3 - j;  // now the fourth point is below the face 0, j, k
    add_face(t, 0, j, k);
    add_face(t, j, 0, 3);
    add_face(t, k, j, 3);
    add_face(t, 0, k, 3);
    return true;
}

// Add the edge i, j of a removed face to the rim of the hole. If the rim already contains the edge, remove the edge.
// Return the number of edges, or -1 if the capacity does not suffice.
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

// Add a point outside a face to the polytope. Remove the faces that see the point, and connect the point to the rim of
// the hole. Return false if the capacity does not suffice.
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

// Compute the direction n of the shortest motion of b that separates the cores, and return the length of this motion.
// With sufficient capacity, the error is at most accuracy * extent. The computed length is never too short.
GPUSIM_SHARED double epa(const Shape& a, const Shape& b, const double* offset, double extent, double accuracy,
                         const Simplex& s, double* n) {
    Polytope t;
    n[0] = n[1] = 0.0;
    n[2] = 1.0;
    if (!make_tetrahedron(a, b, offset, extent, s, t, n)) {
        // Cores without a common volume, such as two segments: n is the normal of their common plane.
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
        if (distance >= UNBOUNDED) break;  // no face has an area
        difference_support(a, b, offset, m, w, point);
        const double support_height = dot3(m, w);
        if (support_height < depth) {
            depth = support_height;
            copy3(m, n);
        }
        if (depth - distance <= accuracy * extent || !expand(t, nearest, w, 1e-13 * extent)) break;
    }
    return depth;
}
