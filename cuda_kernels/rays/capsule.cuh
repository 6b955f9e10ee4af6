// Ray against a capsule: a tube and two balls (gpusim/shapes/capsule.py). The capsule is convex, so the line is inside
// between the first entry and the last exit.
#pragma once
#include "ray.cuh"

GPUSIM_FN void widen(Span& span, const Span& more) {
    if (is_empty(more)) return;
    if (more.enter < span.enter) span.enter = more.enter;
    if (more.leave > span.leave) span.leave = more.leave;
}
GPUSIM_FN double ray_capsule(const Shape& s, const Ray& r, double* normal) {
    const double radius = s.size[0], half = s.size[1];
    Span span, tube = whole_line();
    make_empty(span);
    cut_tube(tube, r, radius);
    cut_slab(tube, r, 2, half);
    widen(span, tube);
    for (int end = -1; end < 2; end += 2) {
        Span ball = whole_line();
        cut_ball(ball, r, end * half, radius);
        widen(span, ball);
    }
    int face;
    const double at = first_end(span, r.start, &face);
    point_at(r, at, normal);
    normal[2] -= clamped(normal[2], -half, half);
    return at;
}
