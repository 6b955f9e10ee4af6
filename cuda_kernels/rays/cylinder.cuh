// Ray against a cylinder (gpusim/shapes/cylinder.py).
#pragma once
#include "ray.cuh"

// Return the part of the line inside a cylinder that extends from -half to half.
GPUSIM_FN Span cylinder_span(const Ray& r, double radius, double half) {
    Span span = whole_line();
    cut_tube(span, r, radius);
    cut_slab(span, r, 2, half);
    return span;
}
GPUSIM_FN double ray_cylinder(const Shape& s, const Ray& r, double* normal) {
    int face = ROUND_SIDE;
    const double at = first_end(cylinder_span(r, s.size[0], s.size[1]), r.start, &face);
    if (face != ROUND_SIDE) {
        face_normal_of(face, normal);
        return at;
    }
    point_at(r, at, normal);
    normal[2] = 0.0;
    return at;
}
