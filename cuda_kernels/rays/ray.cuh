// Common code of the ray tests (rays/*.cuh). Each test returns the first s >= start at which the ray crosses the
// surface, or NO_HIT. Each test also computes the outward normal at the hit, of any length. NumPy:
// gpusim/shapes/casting.py.
#pragma once
#include "../collide/shape.cuh"

#define NO_HIT det::detail::infinity()
#define ROUND_SIDE -1  // code for a round side
#define MAX_STEPS 64  // maximum number of steps from outside to a smooth surface

// Ray in the frame of a shape, with a direction of length 1. The origin is the point of the line nearest to the center
// of the shape, to reduce cancellation. The ray begins at ``start``.
struct Ray {
    double origin[3], direction[3], start;
};
GPUSIM_FN double along(const Ray& r, int k, double s) { return r.origin[k] + s * r.direction[k]; }
GPUSIM_FN void point_at(const Ray& r, double s, double* out) {
    for (int k = 0; k < 3; ++k) out[k] = along(r, k, s);
}

// Part of a line inside a convex body, and the faces at both ends. The part is empty if enter > leave.
struct Span {
    double enter, leave;
    int enter_face, leave_face;
};
GPUSIM_FN Span whole_line() {
    const Span all = {-NO_HIT, NO_HIT, ROUND_SIDE, ROUND_SIDE};
    return all;
}
GPUSIM_FN bool is_empty(const Span& span) { return !(span.enter <= span.leave); }
GPUSIM_FN void make_empty(Span& span) {
    span.enter = NO_HIT;
    span.leave = -NO_HIT;
}
GPUSIM_FN void cut_span(Span& span, double enter, double leave, int enter_face, int leave_face) {
    if (enter > span.enter) {
        span.enter = enter;
        span.enter_face = enter_face;
    }
    if (leave < span.leave) {
        span.leave = leave;
        span.leave_face = leave_face;
    }
}
// Keep the part of the line where value + rate s <= 0.
GPUSIM_FN void cut_half(Span& span, double value, double rate, int face) {
    if (rate == 0.0) {
        if (value > 0.0) make_empty(span);
        return;
    }
    const double s = -value / rate;
    cut_span(span, rate < 0.0 ? s : -NO_HIT, rate < 0.0 ? NO_HIT : s, face, face);
}
// Keep the part where coordinate k is between -half and half. The faces are 2 k (upper) and 2 k + 1 (lower).
GPUSIM_FN void cut_slab(Span& span, const Ray& r, int k, double half) {
    cut_half(span, r.origin[k] - half, r.direction[k], 2 * k);
    cut_half(span, -r.origin[k] - half, -r.direction[k], 2 * k + 1);
}
// Keep the part where |p + s d| <= radius. The arguments p.d, |d|^2 and |p x d|^2 avoid cancellation.
GPUSIM_FN void cut_round(Span& span, double along_line, double square, double aside, double radius) {
    const double within = square * (radius * radius) - aside;
    if (!(within >= 0.0)) return make_empty(span);
    const double half = sqrt_(within);
    cut_span(span, (-along_line - half) / square, (half - along_line) / square, ROUND_SIDE, ROUND_SIDE);
}
// Keep the part within a radius of the axis z.
GPUSIM_FN void cut_tube(Span& span, const Ray& r, double radius) {
    const double *p = r.origin, *d = r.direction;
    const double square = d[0] * d[0] + d[1] * d[1], moment = p[0] * d[1] - p[1] * d[0];
    if (square > 0.0) return cut_round(span, p[0] * d[0] + p[1] * d[1], square, moment * moment, radius);
    if (p[0] * p[0] + p[1] * p[1] > radius * radius) make_empty(span);
}
// Keep the part within a radius of (0, 0, height).
GPUSIM_FN void cut_ball(Span& span, const Ray& r, double height, double radius) {
    const double p[3] = {r.origin[0], r.origin[1], r.origin[2] - height};
    double side[3];
    cross3(p, r.direction, side);
    cut_round(span, dot3(p, r.direction), dot3(r.direction, r.direction), dot3(side, side), radius);
}
// Return the first end of a span that the ray reaches, and the face at this end.
GPUSIM_FN double first_end(const Span& span, double start, int* face) {
    if (is_empty(span)) return NO_HIT;
    *face = span.enter_face;
    if (span.enter >= start) return span.enter;
    *face = span.leave_face;
    return span.leave >= start ? span.leave : NO_HIT;
}

// Newton's method along the line (sign 1) or against it (-1), from a point outside. For convex functions, the method
// never passes the first root. If the slope changes its sign before a root, the function has no root.
template <class Side> GPUSIM_FN double walk_to(const Side& side, double sign, double from, double to) {
    double s = sign * from;
    for (int k = 0; k < MAX_STEPS; ++k) {
        double slope;
        const double value = side.value(sign * s, &slope);
        if (value <= 0.0) break;
        slope = sign * slope;
        if (!(slope < 0.0)) return NO_HIT;
        const double next = s - value / slope;
        if (next > sign * to) return NO_HIT;
        if (!(next > s)) break;
        s = next;
    }
    return sign * s;
}
// Return the first end of the line's part in a body, like first_end. The body is the part of ``bounds`` in which the
// convex function ``side.value`` is <= 0. ``side.flat`` returns whether a point on a face of the bounds is on the body.
template <class Side> GPUSIM_FN double first_side(const Side& side, const Span& bounds, double start, int* face) {
    if (is_empty(bounds) || bounds.leave < start) return NO_HIT;
    double s = bounds.enter;
    *face = bounds.enter_face;
    if (!side.flat(s, *face)) {
        s = walk_to(side, 1.0, s, bounds.leave);
        *face = ROUND_SIDE;
    }
    if (s >= start) return s;  // or NO_HIT
    s = bounds.leave;
    *face = bounds.leave_face;
    if (!side.flat(s, *face)) {
        s = walk_to(side, -1.0, s, bounds.enter);
        *face = ROUND_SIDE;
    }
    return s >= start ? s : NO_HIT;
}
GPUSIM_FN void face_normal_of(int face, double* out) {
    out[0] = out[1] = out[2] = 0.0;
    out[face / 2] = face % 2 ? -1.0 : 1.0;
}
