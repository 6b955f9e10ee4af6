// Ray against the half space below z = 0 (gpusim/shapes/plane.py).
#pragma once
#include "ray.cuh"

GPUSIM_FN double ray_plane(const Shape&, const Ray& r, double* normal) {
    Span span = whole_line();
    cut_half(span, r.origin[2], r.direction[2], 0);
    normal[0] = normal[1] = 0.0;
    normal[2] = 1.0;
    int face;
    return first_end(span, r.start, &face);
}
