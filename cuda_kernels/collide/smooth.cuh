// Contact of two smooth shapes (sphere, ellipsoid, superellipsoid).
//
// At the contact, both surface gradients are parallel to the line between the nearest points (Kosenko, Gerasimov and
// Stavrovskiy 2015, eq. 1). The unit normal n minimizes
//   f(n) = h_A(n) + h_B(n) - n.d,   h: support functions (the shapes are symmetric), d: from A's center to B's,
// -f is the gap along n. Newton's method starts from the normal of the last step. Each step must reduce f.
#pragma once
#include "convex.cuh"
#include "shape.cuh"

#define SMOOTH_STEPS 40
#define SMOOTH_ROTATION 1e-9       // converged: the next step rotates the normal by less than this (rad),
#define SMOOTH_APART 1e-9      // and the distance of the points from the normal is below this, relative to the size
#define SMOOTH_STUCK 1e-14     // a smaller rotation (rad) does not change the result
#define SMOOTH_LONGEST 0.7     // maximum step (rad)
#define SMOOTH_DEEP 0.05       // relative to the size: for deeper overlaps, try other directions too
#define SMOOTH_FLOOR 1e-6      // superellipsoids have infinite second derivatives where a coordinate is 0

// f at a normal, and gradient and second derivatives of f along the tangents.
struct SmoothPoint {
    double n[3], f, gradient[3], on_a[3], on_b[3];  // points are relative to A's center, in the world frame
    double t1[3], t2[3], a[3], b[3];  // tangents, and entries 11, 12, 22 of the second derivatives of h_A and h_B
    double step[2];                   // next Newton step along the tangents
};

// Compute two unit vectors perpendicular to n and to each other.
GPUSIM_FN void tangents(const double* n, double* t1, double* t2) {
    const double s = n[2] < 0.0 ? -1.0 : 1.0, a = -1.0 / (s + n[2]), b = n[0] * n[1] * a;
    t1[0] = 1.0 + s * (n[0] * n[0]) * a; t1[1] = s * b; t1[2] = -s * n[0];
    t2[0] = b; t2[1] = s + n[1] * n[1] * a; t2[2] = -n[1];
}

// Compute the point (gradient) and second derivatives along t and u of an ellipsoid's support function, in its frame.
GPUSIM_FN void ellipsoid_support(const double* size, bool ball, const double* n, const double* t, const double* u,
                                 double* point, double* form) {
    double m[3], p[3], q[3];
    for (int k = 0; k < 3; ++k) {
        const double s = ball ? size[0] : size[k];
        m[k] = s * n[k];
        p[k] = s * t[k];
        q[k] = s * u[k];
    }
    const double h = norm3(m), pm = dot3(p, m) / h, qm = dot3(q, m) / h;
    for (int k = 0; k < 3; ++k) point[k] = (ball ? size[0] : size[k]) * m[k] / h;
    form[0] = (dot3(p, p) - pm * pm) / h;
    form[1] = (dot3(p, q) - pm * qm) / h;
    form[2] = (dot3(q, q) - qm * qm) / h;
}

// Lq norm of (x, y), with first derivatives s and the weights w = (x/norm)^(q - 2) of the second derivatives.
struct PowerNorm {
    double norm, sx, sy, wx, wy;
};

GPUSIM_SHARED PowerNorm power_norm(double x, double y, double q) {
    const double maximum = max_(x, y);
    if (!(maximum > 0.0)) return {0.0, 0.0, 0.0, 0.0, 0.0};
    const double norm = maximum * det::pow(det::pow(x / maximum, q) + det::pow(y / maximum, q), 1.0 / q);
    const double u = x / norm, v = y / norm, lu = max_(u, SMOOTH_FLOOR), lv = max_(v, SMOOTH_FLOOR);
    const double wu = det::pow(lu, q - 2.0), wv = det::pow(lv, q - 2.0);
    return {norm, wu * u, wv * v, wu, wv};
}

// Compute the dual norm of the surface: ((a|x|, b|y|) in L_q2, c|z|) in L_q1, q = 2/(2 - e).
GPUSIM_SHARED void superellipsoid_form(const double* size, const double* n, const double* t, const double* u,
                                       double* point, double* form) {
    const double q1 = 2.0 / (2.0 - size[3]), q2 = 2.0 / (2.0 - size[4]);
    double m[3], p[3], q[3];
    for (int k = 0; k < 3; ++k) {
        const double s = n[k] < 0.0 ? -size[k] : size[k];
        m[k] = s * n[k];
        p[k] = s * t[k];
        q[k] = s * u[k];
    }
    const PowerNorm ring = power_norm(m[0], m[1], q2), all = power_norm(ring.norm, m[2], q1);
    const double d[3] = {all.sx * ring.sx, all.sx * ring.sy, all.sy};
    for (int k = 0; k < 3; ++k) point[k] = (n[k] < 0.0 ? -size[k] : size[k]) * d[k];
    const double pr = ring.sx * p[0] + ring.sy * p[1], qr = ring.sx * q[0] + ring.sy * q[1];
    const double ph = all.sx * pr + all.sy * p[2], qh = all.sx * qr + all.sy * q[2];
    const double outer = (q1 - 1.0) / all.norm;
    const double inner = (q2 - 1.0) * all.sx / max_(ring.norm, SMOOTH_FLOOR * all.norm);
    form[0] = outer * (all.wx * pr * pr + all.wy * p[2] * p[2] - ph * ph)
            + inner * (ring.wx * p[0] * p[0] + ring.wy * p[1] * p[1] - pr * pr);
    form[1] = outer * (all.wx * pr * qr + all.wy * p[2] * q[2] - ph * qh)
            + inner * (ring.wx * p[0] * q[0] + ring.wy * p[1] * q[1] - pr * qr);
    form[2] = outer * (all.wx * qr * qr + all.wy * q[2] * q[2] - qh * qh)
            + inner * (ring.wx * q[0] * q[0] + ring.wy * q[1] * q[1] - qr * qr);
}

// Compute the point and the second derivatives of a shape's support function, in the world frame, from its center.
GPUSIM_FN void smooth_support(const Shape& s, const double* n, const double* t, const double* u, double* point,
                              double* form) {
    double local_n[3], local_t[3], local_u[3], local[3];
    rotate_back3(s.rotation, n, local_n);
    rotate_back3(s.rotation, t, local_t);
    rotate_back3(s.rotation, u, local_u);
    if (s.kind == SHAPE_SUPERELLIPSOID) superellipsoid_form(s.size, local_n, local_t, local_u, local, form);
    else ellipsoid_support(s.size, s.kind == SHAPE_SPHERE, local_n, local_t, local_u, local, form);
    rotate3(s.rotation, local, point);
}

GPUSIM_SHARED void smooth_at(const Shape& a, const Shape& b, const double* d, const double* n, SmoothPoint& p) {
    const double length = norm3(n);
    for (int k = 0; k < 3; ++k) p.n[k] = n[k] / length;
    tangents(p.n, p.t1, p.t2);
    double q[3];
    smooth_support(a, p.n, p.t1, p.t2, p.on_a, p.a);
    smooth_support(b, p.n, p.t1, p.t2, q, p.b);
    for (int k = 0; k < 3; ++k) {
        p.on_b[k] = d[k] - q[k];
        p.gradient[k] = p.on_a[k] - p.on_b[k];
    }
    p.f = dot3(p.n, p.gradient);
}

// Compute the safeguarded Newton step along the tangents. If f is not convex, use a convex model of f.
GPUSIM_FN void smooth_step(const SmoothPoint& p, double g1, double g2, double* step) {
    double m11 = p.a[0] + p.b[0] - p.f, m12 = p.a[1] + p.b[1], m22 = p.a[2] + p.b[2] - p.f;
    const double middle = 0.5 * (m11 + m22), half = 0.5 * (m11 - m22);
    const double spread = sqrt_(half * half + m12 * m12), min_eigenvalue = middle - spread;
    const double scale = p.a[0] + p.b[0] + p.a[2] + p.b[2] + abs_(p.f);
    if (min_eigenvalue < 1e-10 * scale) {
        // Replace the eigenvalues by their absolute values. Along a convex axis, the step is Newton's step.
        const double low = max_(-min_eigenvalue, 1e-3 * scale), high = max_(abs_(middle + spread), 1e-3 * scale);
        const double x = spread > 0.0 ? half / spread : 1.0, y = spread > 0.0 ? m12 / spread : 0.0;
        m11 = 0.5 * (low + high) + 0.5 * (high - low) * x;
        m12 = 0.5 * (high - low) * y;
        m22 = 0.5 * (low + high) - 0.5 * (high - low) * x;
    }
    const double det = m11 * m22 - m12 * m12;
    step[0] = (m12 * g2 - m22 * g1) / det;
    step[1] = (m12 * g1 - m11 * g2) / det;
    const double length = sqrt_(step[0] * step[0] + step[1] * step[1]);
    if (length > SMOOTH_LONGEST) {
        step[0] = step[0] * (SMOOTH_LONGEST / length);
        step[1] = step[1] * (SMOOTH_LONGEST / length);
    }
}

// Minimize f, starting from p. Return 1 if converged, 0 if not, or -1 if the gap exceeds the margin.
GPUSIM_SHARED int smooth_descend(const Shape& a, const Shape& b, const double* d, double margin, double size,
                                 SmoothPoint& p) {
    for (int k = 0; k < SMOOTH_STEPS; ++k) {
        if (-p.f > margin) return -1;
        const double g1 = dot3(p.t1, p.gradient), g2 = dot3(p.t2, p.gradient);
        smooth_step(p, g1, g2, p.step);
        const double s1 = p.step[0], s2 = p.step[1], angle = sqrt_(s1 * s1 + s2 * s2);
        if (angle < SMOOTH_ROTATION && g1 * g1 + g2 * g2 < (SMOOTH_APART * size) * (SMOOTH_APART * size)) return 1;
        const double slope = g1 * s1 + g2 * s2;
        // Near a flat side, the points move far although f changes very little. Therefore also stop if f changes very
        // little.
        const int settled = -slope < SMOOTH_APART * size ? 1 : 0;
        if (k == SMOOTH_STEPS - 1 || !(angle > SMOOTH_STUCK)) return settled;
        double fraction = 1.0;
        SmoothPoint q;
        bool decreased = false;
        for (int trial = 0; trial < 12 && !decreased; ++trial) {
            double n[3];
            for (int i = 0; i < 3; ++i) n[i] = p.n[i] + fraction * (s1 * p.t1[i] + s2 * p.t2[i]);
            smooth_at(a, b, d, n, q);
            // Near the minimum, f changes by less than round-off.
            decreased = q.f <= p.f + 1e-4 * fraction * slope + 4e-16 * size;
            fraction = 0.3 * fraction;
        }
        if (!decreased) return settled;
        p = q;
    }
    return 0;
}

// For a deep overlap, restart from a principal axis. Return whether the restart finds a shorter motion that separates
// the shapes.
GPUSIM_SHARED bool smooth_restart(const Shape& a, const Shape& b, const double* d, double size, SmoothPoint& p) {
    bool better = false;
    double best = p.f - 1e-9 * size;
    SmoothPoint q;
    for (int k = 0; k < 6; ++k) {
        const double* m = k < 3 ? a.rotation + k : b.rotation + (k - 3);
        const double x = m[0] * d[0] + m[3] * d[1] + m[6] * d[2], sign = x < 0.0 ? -1.0 : 1.0;
        const double n[3] = {sign * m[0], sign * m[3], sign * m[6]};
        smooth_at(a, b, d, n, q);
        if (q.f < best) {
            best = q.f;
            p = q;
            better = true;
        }
    }
    return better;
}

// Like smooth_smooth, but return -1 if the method has not converged. The caller then uses the general routine.
GPUSIM_SHARED int smooth_track(const Shape& a, const Shape& b, double margin, double* guess, Manifold& out) {
    const double d[3] = {b.center[0] - a.center[0], b.center[1] - a.center[1], b.center[2] - a.center[2]};
    const double size = shape_extent(a) + shape_extent(b);
    double n[3];
    rotate3(a.rotation, guess, n);
    if (!(dot3(n, n) > 0.5)) {
        const bool near = !(dot3(d, d) > 1e-24 * size * size);
        for (int k = 0; k < 3; ++k) n[k] = near ? a.rotation[3 * k + 2] : d[k];
    }
    SmoothPoint p;
    smooth_at(a, b, d, n, p);
    int state = smooth_descend(a, b, d, margin, size, p);
    if (state == 1 && p.f > SMOOTH_DEEP * size) {
        const SmoothPoint saved = p;
        if (smooth_restart(a, b, d, size, p)) state = smooth_descend(a, b, d, margin, size, p);
        if (state != 1 || p.f > saved.f) {
            p = saved;
            state = 1;
        }
    }
    if (state == 0) return -1;
    rotate_back3(a.rotation, p.n, guess);
    out.count = 0;
    if (state < 0) return 0;
    // Motion of the points in the next step.
    const double s1 = p.step[0], s2 = p.step[1];
    const double a1 = p.a[0] * s1 + p.a[1] * s2, a2 = p.a[1] * s1 + p.a[2] * s2;
    const double b1 = p.b[0] * s1 + p.b[1] * s2, b2 = p.b[1] * s1 + p.b[2] * s2;
    for (int k = 0; k < 3; ++k) {
        p.on_a[k] = p.on_a[k] + (a1 * p.t1[k] + a2 * p.t2[k]);
        p.on_b[k] = p.on_b[k] - (b1 * p.t1[k] + b2 * p.t2[k]);
        out.normal[k] = p.n[k];
        const double middle = a.center[k] + 0.5 * (p.on_a[k] + p.on_b[k]);
        out.a[k] = middle + 0.5 * p.f * p.n[k];
        out.b[k] = middle - 0.5 * p.f * p.n[k];
    }
    out.feature[0] = 0;
    out.count = 1;
    return 1;
}

// Compute the contact point of two smooth shapes. `guess` is the last normal in A's frame.
GPUSIM_FN int smooth_smooth(const Shape& a, const Shape& b, double margin, double* guess, Manifold& out) {
    const int count = smooth_track(a, b, margin, guess, out);
    return count < 0 ? convex_convex(a, b, margin, guess, out) : count;
}
