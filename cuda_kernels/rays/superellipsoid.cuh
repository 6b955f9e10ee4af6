// Ray against a superellipsoid (gpusim/shapes/superellipsoid.py).
#pragma once
#include "ray.cuh"

// Return (a^p + b^p)^(1/p) of non-negative numbers, and the derivatives with respect to a and b.
GPUSIM_SHARED double power_norm(double a, double b, double p, double* by_a, double* by_b) {
    const double maximum = max_(a, b);
    *by_a = *by_b = 0.0;
    if (!(maximum > 0.0)) return 0.0;
    const double ratio = min_(a, b) / maximum, power = det::pow(ratio, p), sum = 1.0 + power;
    const double root = det::pow(sum, 1.0 / p), by_max = root / sum;
    const double by_min = ratio > 0.0 ? power / ratio * by_max : 0.0;
    *by_a = a < b ? by_min : by_max;
    *by_b = a < b ? by_max : by_min;
    return maximum * root;
}
// Convex function: two nested norms minus 1.
struct SuperSide {
    const double* size;
    const Ray* ray;
    // Return the value and compute the gradient at a point of the line.
    MEMBER double gradient(double s, double* out) const {
        double part[3], by_ring, by_x, by_y, by_z;
        for (int k = 0; k < 3; ++k) part[k] = along(*ray, k, s) / size[k];
        const double ring = power_norm(abs_(part[0]), abs_(part[1]), 2.0 / size[4], &by_x, &by_y);
        const double norm = power_norm(ring, abs_(part[2]), 2.0 / size[3], &by_ring, &by_z);
        const double by[3] = {by_ring * by_x, by_ring * by_y, by_z};
        for (int k = 0; k < 3; ++k) out[k] = (part[k] < 0.0 ? -by[k] : by[k]) / size[k];
        return norm - 1.0;
    }
    MEMBER double value(double s, double* slope) const {
        double out[3];
        const double found = gradient(s, out);
        *slope = dot3(out, ray->direction);
        return found;
    }
    MEMBER bool flat(double, int) const { return false; }
};
GPUSIM_SHARED double ray_superellipsoid(const Shape& s, const Ray& r, double* normal) {
    const SuperSide side = {s.size, &r};
    Span span = whole_line();
    for (int k = 0; k < 3; ++k) cut_slab(span, r, k, s.size[k]);
    int face;
    const double at = first_side(side, span, r.start, &face);
    if (at < NO_HIT) side.gradient(at, normal);
    return at;
}
