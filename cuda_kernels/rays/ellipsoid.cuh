// Ray against an ellipsoid, which is a ball after scaling (gpusim/shapes/ellipsoid.py).
#pragma once
#include "ray.cuh"

GPUSIM_FN double ray_ellipsoid(const Shape& s, const Ray& r, double* normal) {
    Span span = whole_line();
    Ray unit = r;
    for (int k = 0; k < 3; ++k) {
        unit.origin[k] = r.origin[k] / s.size[k];
        unit.direction[k] = r.direction[k] / s.size[k];
    }
    cut_ball(span, unit, 0.0, 1.0);
    int face;
    const double at = first_end(span, r.start, &face);
    for (int k = 0; k < 3; ++k) normal[k] = along(unit, k, at) / s.size[k];
    return at;
}
