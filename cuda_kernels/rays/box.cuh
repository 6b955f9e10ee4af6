// Ray against a box (gpusim/shapes/box.py).
#pragma once
#include "ray.cuh"

GPUSIM_FN double ray_box(const Shape& s, const Ray& r, double* normal) {
    Span span = whole_line();
    for (int k = 0; k < 3; ++k) cut_slab(span, r, k, s.size[k]);
    int face = 0;
    const double at = first_end(span, r.start, &face);
    face_normal_of(face, normal);
    return at;
}
