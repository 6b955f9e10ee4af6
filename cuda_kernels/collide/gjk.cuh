// Distance of two convex cores (Gilbert, Johnson and Keerthi 1988). Points are relative to the center of A. The
// Minkowski difference a - b contains the origin if the cores overlap. Otherwise, let v be the point of the difference
// that is nearest to the origin. |v| is the distance, and -v/|v| is the normal from A to B.
#pragma once
#include "support.cuh"

#define GJK_STEPS 48
#define GJK_ACCURACY 1e-12   // relative accuracy of the distance
#define GJK_FLAT 1e-10       // a tetrahedron of this height relative to an edge is flat
#define GJK_WEIGHTS 1e-6     // tolerance of the sum of weights, which should be 1
#define GJK_SUM 1e-3         // tolerance of a weighted sum, relative to the distance
#define GJK_APART 0
#define GJK_OVERLAP 1
#define GJK_FAR 2

struct Simplex {
    int count;
    double w[12], a[12];  // points of the difference, and the corresponding points of A
    double weight[4];     // barycentric weights of the point nearest to the origin
};

// Compute the support point of the Minkowski difference along d. ``offset`` is b's center.
GPUSIM_SHARED void difference_support(const Shape& a, const Shape& b, const double* offset, const double* d, double* w,
                                      double* point) {
    double local[3], p[3], q[3];
    rotate_back3(a.rotation, d, local);
    core_support(a, local, p);
    rotate3(a.rotation, p, point);
    rotate_back3(b.rotation, d, local);
    for (int k = 0; k < 3; ++k) local[k] = -local[k];
    core_support(b, local, q);
    rotate3(b.rotation, q, q);
    for (int k = 0; k < 3; ++k) w[k] = point[k] - (offset[k] + q[k]);
}

// Return the distance by which b must move along the unit vector n until the cores touch.
GPUSIM_FN double depth_along(const Shape& a, const Shape& b, const double* offset, const double* n) {
    double w[3], point[3];
    difference_support(a, b, offset, n, w, point);
    return dot3(w, n);
}

// Compute the point v of the segment p, q nearest to the origin, and the weights of v.
GPUSIM_FN void weigh_segment(const double* p, const double* q, double* weight, double* v) {
    double e[3];
    subtract3(q, p, e);
    const double length = dot3(e, e);
    const double t = length > 0.0 ? clamped(-dot3(p, e) / length, 0.0, 1.0) : 0.0;
    weight[0] = 1.0 - t;
    weight[1] = t;
    for (int k = 0; k < 3; ++k) v[k] = p[k] + t * e[k];
}

// Return whether x = v - p is the sum of edges e and f with these weights, and no weight is negative.
GPUSIM_FN bool is_sum(const double* e, const double* f, const double* x, const double* v, const double* weight) {
    double error = 0.0;
    for (int k = 0; k < 3; ++k) {
        const double d = weight[1] * e[k] + weight[2] * f[k] - x[k];
        error += d * d;
    }
    const double min_weight = min_(weight[0], min_(weight[1], weight[2]));
    return min_weight > -GJK_SUM && error <= GJK_SUM * GJK_SUM * (dot3(v, v) + GJK_ACCURACY * dot3(x, x));
}

// Find the number t between 0 and 1 for which p + t e is nearest to the origin. ``square`` is the squared distance.
GPUSIM_FN double nearest_fraction(const double* p, const double* e, double& square) {
    const double length = dot3(e, e), t = length > 0.0 ? clamped(-dot3(p, e) / length, 0.0, 1.0) : 0.0;
    square = 0.0;
    for (int k = 0; k < 3; ++k) square += (p[k] + t * e[k]) * (p[k] + t * e[k]);
    return t;
}

// Compute v and the weights for a triangle (Ericson, Real-Time Collision Detection, 5.1.5, with the point at the
// origin). Inside the triangle, compute v from the normal, and the weights from v. Ericson's weights are too inaccurate
// in a sliver.
GPUSIM_SHARED void weigh_triangle(const double* p, const double* q, const double* r, double* weight, double* v) {
    double e[3], f[3];
    subtract3(q, p, e);
    subtract3(r, p, f);
    const double d1 = -dot3(e, p), d2 = -dot3(f, p), d3 = -dot3(e, q), d4 = -dot3(f, q), d5 = -dot3(e, r), d6 = -dot3(f, r);
    const double va = d3 * d6 - d5 * d4, vb = d5 * d2 - d1 * d6, vc = d1 * d4 - d3 * d2;
    double s = 0.0, t = 0.0;  // weights of q and r
    if (d1 <= 0.0 && d2 <= 0.0) {
    } else if (d3 >= 0.0 && d4 <= d3) {
        s = 1.0;
    } else if (d6 >= 0.0 && d5 <= d6) {
        t = 1.0;
    } else if (vc <= 0.0 && d1 >= 0.0 && d3 <= 0.0) {
        s = d1 / (d1 - d3);
    } else if (vb <= 0.0 && d2 >= 0.0 && d6 <= 0.0) {
        t = d2 / (d2 - d6);
    } else if (va <= 0.0 && d4 - d3 >= 0.0 && d5 - d6 >= 0.0) {
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6));
        s = 1.0 - t;
    } else {
        double n[3], x[3], m[3];
        cross3(e, f, n);
        const double square = dot3(n, n), scale = dot3(n, p) / square;
        for (int k = 0; k < 3; ++k) {
            v[k] = scale * n[k];
            x[k] = v[k] - p[k];
        }
        cross3(x, f, m);
        weight[1] = dot3(m, n) / square;
        cross3(e, x, m);
        weight[2] = dot3(m, n) / square;
        weight[0] = (1.0 - weight[2]) - weight[1];
        if (is_sum(e, f, x, v, weight)) return;
        double pq, pr, qr;  // a sliver: use its nearest edge
        subtract3(f, e, x);
        const double on_pq = nearest_fraction(p, e, pq), on_pr = nearest_fraction(p, f, pr);
        const double on_qr = nearest_fraction(q, x, qr);
        const bool first = pq <= pr && pq <= qr, last = !first && qr < pr;
        s = first ? on_pq : (last ? 1.0 - on_qr : 0.0);
        t = first ? 0.0 : (last ? on_qr : on_pr);
    }
    weight[0] = (1.0 - t) - s;  // exactly 0 on the edge q, r
    weight[1] = s;
    weight[2] = t;
    for (int k = 0; k < 3; ++k) v[k] = p[k] + (s * e[k] + t * f[k]);
}

// Return true if the triangle i, j, k separates the origin from point o, or if the four points are in one plane.
GPUSIM_FN bool face_separates(const Simplex& s, int i, int j, int k, int o) {
    double e[3], f[3], g[3], n[3];
    const double* p = s.w + 3 * i;
    subtract3(s.w + 3 * j, p, e);
    subtract3(s.w + 3 * k, p, f);
    subtract3(s.w + 3 * o, p, g);
    cross3(e, f, n);
    const double height = dot3(n, g);
    return -dot3(n, p) * height < 0.0 || height * height <= GJK_FLAT * GJK_FLAT * dot3(n, n) * dot3(g, g);
}

// Compute v and the weights for a tetrahedron. Return false if the tetrahedron contains the origin.
GPUSIM_FN bool weigh_tetrahedron(Simplex& s, double* v) {
    double min_square = UNBOUNDED, weight[3], x[3];
    bool outside = false;
    for (int o = 3; o >= 0; --o) {
        const int i = o == 0 ? 1 : 0, j = o <= 1 ? 2 : 1, k = o == 3 ? 2 : 3;
        if (!face_separates(s, i, j, k, o)) continue;
        outside = true;
        weigh_triangle(s.w + 3 * i, s.w + 3 * j, s.w + 3 * k, weight, x);
        const double square = dot3(x, x);
        if (square < min_square) {
            min_square = square;
            copy3(x, v);
            s.weight[o] = 0.0; s.weight[i] = weight[0]; s.weight[j] = weight[1]; s.weight[k] = weight[2];
        }
    }
    return outside;
}

// Compute the point v of the simplex nearest to the origin, and drop points with weight 0. Return false if the simplex
// contains the origin.
GPUSIM_SHARED bool reduce_simplex(Simplex& s, double* v) {
    v[0] = v[1] = v[2] = 0.0;
    if (s.count == 1) {
        s.weight[0] = 1.0;
        copy3(s.w, v);
    }
    if (s.count == 2) weigh_segment(s.w, s.w + 3, s.weight, v);
    if (s.count == 3) weigh_triangle(s.w, s.w + 3, s.w + 6, s.weight, v);
    if (s.count == 4 && !weigh_tetrahedron(s, v)) return false;
    int remaining = 0;
    for (int i = 0; i < s.count; ++i) {
        if (!(s.weight[i] > 0.0)) continue;
        s.weight[remaining] = s.weight[i];
        copy3(s.w + 3 * i, s.w + 3 * remaining);
        copy3(s.a + 3 * i, s.a + 3 * remaining);
        ++remaining;
    }
    s.count = remaining;
    return true;
}

GPUSIM_FN bool contains_point(const Simplex& s, const double* w) {
    for (int i = 0; i < s.count; ++i)
        if (s.w[3 * i] == w[0] && s.w[3 * i + 1] == w[1] && s.w[3 * i + 2] == w[2]) return true;
    return false;
}

// Compute the distance of the cores. The input v is a guess of the negative normal, of any length. The output v is the
// point nearest to the origin. FAR: the distance exceeds ``max_distance``, and v separates the cores. OVERLAP: the
// distance is below ``min_distance``.
GPUSIM_SHARED int gjk(const Shape& a, const Shape& b, const double* offset, double max_distance, double min_distance,
                      double* v, Simplex& s) {
    double square = UNBOUNDED;
    s.count = 0;
    for (int step = 0; step < GJK_STEPS; ++step) {
        const double d[3] = {-v[0], -v[1], -v[2]};
        double w[3], point[3];
        difference_support(a, b, offset, d, w, point);
        const double vv = dot3(v, v), vw = dot3(v, w);
        if (vw > 0.0 && vw * vw > max_distance * max_distance * vv) return GJK_FAR;
        if (s.count > 0 && (vv - vw <= GJK_ACCURACY * vv || contains_point(s, w))) return GJK_APART;
        copy3(w, s.w + 3 * s.count);
        copy3(point, s.a + 3 * s.count);
        s.count += 1;
        double nearest[3];
        const Simplex before = s;
        if (!reduce_simplex(s, nearest)) return GJK_OVERLAP;
        const double now = dot3(nearest, nearest);
        if (!(now < square)) {  // round-off stops the iteration
            s = before;
            s.count -= 1;
            return GJK_APART;
        }
        square = now;
        copy3(nearest, v);
        if (square <= min_distance * min_distance) return GJK_OVERLAP;
    }
    return GJK_APART;
}

// Compute the nearest points of both cores, relative to A's center. Round-off may have removed a point of a sliver. If
// the sum of the weights is not 1, normalize the weights on the core whose points are closer together.
GPUSIM_FN void nearest_points(const Simplex& s, const double* v, double* on_a, double* on_b) {
    double total = 0.0, spread_a = 0.0, spread_b = 0.0;
    for (int i = 0; i < s.count; ++i) total += s.weight[i];
    const bool normalized = !(abs_(total - 1.0) > GJK_WEIGHTS && total > 0.0);
    for (int i = 1; i < s.count && !normalized; ++i)
        for (int k = 0; k < 3; ++k) {
            const double d = s.a[3 * i + k] - s.a[k], e = d - (s.w[3 * i + k] - s.w[k]);
            spread_a += d * d;
            spread_b += e * e;
        }
    const bool by_b = spread_b < spread_a;
    for (int k = 0; k < 3; ++k) {
        double sum = by_b ? s.a[k] - s.w[k] : s.a[k];
        for (int i = 1; i < s.count; ++i) {
            const double d = s.a[3 * i + k] - s.a[k];
            sum += (normalized ? s.weight[i] : s.weight[i] / total) * (by_b ? d - (s.w[3 * i + k] - s.w[k]) : d);
        }
        on_a[k] = by_b ? sum + v[k] : sum;
        on_b[k] = by_b ? sum : sum - v[k];
    }
}
