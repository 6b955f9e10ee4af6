// Ray against a hull: the part of the line inside all faces (gpusim/shapes/hull.py).
#pragma once
#include "ray.cuh"

GPUSIM_FN double ray_hull(const Shape& s, const Ray& r, double* normal) {
    Span span = whole_line();
    for (int f = 0; f < s.num_faces; ++f) {
        const double *out = s.face_normal + 3 * f, *corner = s.points + 3 * s.face_vertex[s.face_first[f]];
        double from_corner[3];
        subtract3(r.origin, corner, from_corner);
        cut_half(span, dot3(out, from_corner), dot3(out, r.direction), f);
    }
    int face = 0;
    const double at = first_end(span, r.start, &face);
    copy3(s.face_normal + 3 * face, normal);
    return at;
}
