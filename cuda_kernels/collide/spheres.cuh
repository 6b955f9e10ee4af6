// Closed forms for spheres and capsules against each other and against boxes, cylinders and
// cones. Normals point from A to B.
#pragma once
#include "shape.cuh"

#define ROUND_NEAR 1e-10            // relative to the size: a shorter vector between points has no useful direction
#define CAPSULE_PARALLEL_SINE2 1e-4 // parallel if the square of the sine is below this

GPUSIM_FN void put_point(Manifold& out, int k, const double* on_a, double gap, int feature) {
    for (int i = 0; i < 3; ++i) {
        out.a[3 * k + i] = on_a[i];
        out.b[3 * k + i] = on_a[i] + gap * out.normal[i];
    }
    out.feature[k] = feature;
}

// Compute the contact of two balls with the radii p and q. If the centers coincide, the normal is `fallback`.
GPUSIM_FN int ball_ball(const double* center_a, double p, const double* center_b, double q, const double* fallback,
                        double margin, int feature, Manifold& out) {
    const double d[3] = {center_b[0] - center_a[0], center_b[1] - center_a[1], center_b[2] - center_a[2]};
    const double square = dot3(d, d), max_distance = p + q + margin;
    out.count = 0;
    if (square > max_distance * max_distance) return 0;
    const double distance = sqrt_(square);
    const bool near = !(distance > ROUND_NEAR * (p + q));
    double on_a[3];
    for (int k = 0; k < 3; ++k) {
        out.normal[k] = near ? fallback[k] : d[k] / distance;
        on_a[k] = center_a[k] + p * out.normal[k];
    }
    put_point(out, 0, on_a, distance - (p + q), feature);
    out.count = 1;
    return 1;
}

GPUSIM_FN int sphere_sphere(const Shape& a, const Shape& b, double margin, Manifold& out) {
    const double up[3] = {0.0, 0.0, 1.0};
    return ball_ball(a.center, a.size[0], b.center, b.size[0], up, margin, 0, out);
}

// Set the contact point of a sphere with another shape. `normal` is a unit vector in B's frame.
GPUSIM_FN int sphere_contact(const Shape& a, const Shape& b, const double* normal, double gap, Manifold& out) {
    rotate3(b.rotation, normal, out.normal);
    double on_a[3];
    for (int k = 0; k < 3; ++k) on_a[k] = a.center[k] + a.size[0] * out.normal[k];
    put_point(out, 0, on_a, gap, 0);
    out.count = 1;
    return 1;
}

GPUSIM_FN void center_in_frame(const Shape& a, const Shape& b, double* c) {
    double d[3];
    subtract3(a.center, b.center, d);
    rotate_back3(b.rotation, d, c);
}

GPUSIM_SHARED int sphere_box(const Shape& a, const Shape& b, double margin, Manifold& out) {
    double c[3], d[3];
    center_in_frame(a, b, c);
    const double *h = b.size, max_distance = a.size[0] + margin;
    out.count = 0;
    for (int k = 0; k < 3; ++k) d[k] = clamped(c[k], -h[k], h[k]) - c[k];
    const double square = dot3(d, d);
    if (square > max_distance * max_distance) return 0;
    const double distance = sqrt_(square);
    if (distance > ROUND_NEAR * (h[0] + h[1] + h[2])) {
        for (int k = 0; k < 3; ++k) d[k] = d[k] / distance;
        return sphere_contact(a, b, d, distance - a.size[0], out);
    }
    // The center is inside: the nearest face gives the normal.
    int best = 0;
    for (int k = 1; k < 3; ++k)
        if (h[k] - abs_(c[k]) < h[best] - abs_(c[best])) best = k;
    for (int k = 0; k < 3; ++k) d[k] = k != best ? 0.0 : (c[k] < 0.0 ? 1.0 : -1.0);
    return sphere_contact(a, b, d, abs_(c[best]) - h[best] - a.size[0], out);
}

// Direction (x, z) and gap from the point (radial, z) to the outline of a solid of revolution.
struct Outline {
    double x, z, gap;
};

GPUSIM_FN Outline cylinder_outline(double radial, double z, double radius, double half) {
    const double x = min_(radial, radius) - radial, y = clamped(z, -half, half) - z;
    const double distance = sqrt_(x * x + y * y);
    if (distance > ROUND_NEAR * (radius + half)) return {x / distance, y / distance, distance};
    const double side = radius - radial, cap = half - abs_(z);
    if (side < cap) return {-1.0, 0.0, -side};
    return {0.0, z < 0.0 ? 1.0 : -1.0, -cap};
}

// Base at z = -half, apex at +half.
GPUSIM_FN Outline cone_outline(double radial, double z, double radius, double half) {
    const double slant = sqrt_(radius * radius + 4.0 * half * half);
    const double nx = 2.0 * half / slant, nz = radius / slant;  // outward normal of the side
    const double side = (radial - radius) * nx + (z + half) * nz;
    const double along = (radius - radial) * nz + (z + half) * nx;  // position along the side, from the rim to the apex
    const double base = -half - z;
    if (side <= 0.0 && base <= 0.0) {
        if (side > base) return {-nx, -nz, side};
        return {0.0, 1.0, base};
    }
    double x = -side * nx, y = -side * nz;
    if (base > 0.0 && radial <= radius) {
        x = 0.0;
        y = base;
    } else if (along > slant || along < 0.0) {
        x = along < 0.0 ? radius - radial : -radial;
        y = along < 0.0 ? -half - z : half - z;
    }
    const double distance = sqrt_(x * x + y * y);
    if (distance > ROUND_NEAR * (radius + half)) return {x / distance, y / distance, distance};
    return {-nx, -nz, distance};
}

GPUSIM_SHARED int sphere_round(const Shape& a, const Shape& b, double margin, Manifold& out) {
    double c[3];
    center_in_frame(a, b, c);
    const double radial = sqrt_(c[0] * c[0] + c[1] * c[1]);
    const Outline o = b.kind == SHAPE_CONE ? cone_outline(radial, c[2], b.size[0], b.size[1])
                                           : cylinder_outline(radial, c[2], b.size[0], b.size[1]);
    const double gap = o.gap - a.size[0];
    out.count = 0;
    if (gap > margin) return 0;
    const bool on_axis = !(radial > ROUND_NEAR * b.size[0]);
    const double n[3] = {on_axis ? o.x : o.x * (c[0] / radial), on_axis ? 0.0 : o.x * (c[1] / radial), o.z};
    return sphere_contact(a, b, n, gap, out);
}

GPUSIM_SHARED int sphere_cylinder(const Shape& a, const Shape& b, double margin, Manifold& out) {
    return sphere_round(a, b, margin, out);
}
GPUSIM_SHARED int sphere_cone(const Shape& a, const Shape& b, double margin, Manifold& out) {
    return sphere_round(a, b, margin, out);
}

GPUSIM_SHARED int sphere_capsule(const Shape& a, const Shape& b, double margin, Manifold& out) {
    const double axis[3] = {b.rotation[2], b.rotation[5], b.rotation[8]};
    const double fallback[3] = {b.rotation[0], b.rotation[3], b.rotation[6]};
    double d[3], nearest[3];
    subtract3(a.center, b.center, d);
    const double s = clamped(dot3(d, axis), -b.size[1], b.size[1]);
    for (int k = 0; k < 3; ++k) nearest[k] = b.center[k] + s * axis[k];
    return ball_ball(a.center, a.size[0], nearest, b.size[0], fallback, margin, 0, out);
}

// Set two points at the ends of the overlap of parallel capsules, with the normal of `out`.
// Return 0 without an overlap.
GPUSIM_FN int capsule_overlap(const Shape& a, const Shape& b, const double* u, const double* v, const double* d,
                              double c, double margin, Manifold& out) {
    const double middle = dot3(d, u), half_b = b.size[1] * abs_(c);
    const double low = max_(-a.size[1], middle - half_b), high = min_(a.size[1], middle + half_b);
    if (!(high - low > ROUND_NEAR * (a.size[1] + b.size[1]))) return 0;
    int n = 0;
    for (int k = 0; k < 2; ++k) {
        const double s = k == 0 ? low : high;
        const double t = clamped((s - middle) / c, -b.size[1], b.size[1]);
        double on_a[3], separation = 0.0;
        for (int i = 0; i < 3; ++i) {
            separation = separation + out.normal[i] * (d[i] + t * v[i] - s * u[i]);
            on_a[i] = a.center[i] + s * u[i] + a.size[0] * out.normal[i];
        }
        const double gap = separation - a.size[0] - b.size[0];
        if (gap <= margin) put_point(out, n++, on_a, gap, k);
    }
    return n;
}

// Compute the nearest points of two segments. s is along u from A's center, t is along v from
// B's center. d = B - A, c = u.v.
GPUSIM_FN void nearest_on_segments(const double* u, const double* v, const double* d, double c, double half_a,
                                   double half_b, double* s, double* t) {
    const double du = dot3(d, u), dv = dot3(d, v), sine2 = 1.0 - c * c;
    double x = sine2 > 1e-14 ? clamped((du - c * dv) / sine2, -half_a, half_a) : clamped(du, -half_a, half_a);
    double y = c * x - dv;
    if (y > half_b || y < -half_b) {
        y = clamped(y, -half_b, half_b);
        x = clamped(c * y + du, -half_a, half_a);
    }
    *s = x;
    *t = y;
}

GPUSIM_SHARED int capsule_capsule(const Shape& a, const Shape& b, double margin, Manifold& out) {
    const double u[3] = {a.rotation[2], a.rotation[5], a.rotation[8]};
    const double v[3] = {b.rotation[2], b.rotation[5], b.rotation[8]};
    double d[3], on_a[3], on_b[3], fallback[3], s, t;
    subtract3(b.center, a.center, d);
    const double c = dot3(u, v);
    nearest_on_segments(u, v, d, c, a.size[1], b.size[1], &s, &t);
    for (int k = 0; k < 3; ++k) {
        on_a[k] = a.center[k] + s * u[k];
        on_b[k] = b.center[k] + t * v[k];
    }
    // If the axes cross, use their common normal. If the axes are collinear, use any perpendicular direction.
    cross3(u, v, fallback);
    const double sine2 = dot3(fallback, fallback), sine = sqrt_(sine2);
    for (int k = 0; k < 3; ++k) fallback[k] = sine2 > 1e-12 ? fallback[k] / sine : a.rotation[3 * k];
    if (ball_ball(on_a, a.size[0], on_b, b.size[0], fallback, margin, 2, out) == 0) return 0;
    // Two collinear capsules have a normal along the axis, and only one contact point.
    const double cosine = dot3(out.normal, u);
    if (sine2 < CAPSULE_PARALLEL_SINE2 && cosine * cosine < CAPSULE_PARALLEL_SINE2) {
        const int n = capsule_overlap(a, b, u, v, d, c, margin, out);
        if (n > 0) {
            out.count = n;
            return n;
        }
    }
    return out.count;
}
