// Ray against a sphere (gpusim/shapes/sphere.py).
#pragma once
#include "ray.cuh"

GPUSIM_FN double ray_sphere(const Shape& s, const Ray& r, double* normal) {
    Span span = whole_line();
    cut_ball(span, r, 0.0, s.size[0]);
    int face;
    const double at = first_end(span, r.start, &face);
    point_at(r, at, normal);
    return at;
}
