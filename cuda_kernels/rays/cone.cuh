// Ray against a cone (gpusim/shapes/cone.py).
#pragma once
#include "cylinder.cuh"

// Distance of a point from the axis, minus the radius of the cone at the height of the point. Along a line, the
// function is convex.
struct ConeSide {
    const double* size;
    const Ray* ray;
    MEMBER double value(double s, double* slope) const {
        const double x = along(*ray, 0, s), y = along(*ray, 1, s), out = sqrt_(x * x + y * y);
        const double taper = 0.5 * size[0] / size[1];
        *slope = taper * ray->direction[2];
        if (out > 0.0) *slope += (x * ray->direction[0] + y * ray->direction[1]) / out;
        return out - taper * (size[1] - along(*ray, 2, s));
    }
    MEMBER bool flat(double s, int face) const {
        const double x = along(*ray, 0, s), y = along(*ray, 1, s);
        return face == 5 && x * x + y * y <= size[0] * size[0];  // the base
    }
};
GPUSIM_FN double ray_cone(const Shape& s, const Ray& r, double* normal) {
    const ConeSide side = {s.size, &r};
    int face = ROUND_SIDE;
    const double at = first_side(side, cylinder_span(r, s.size[0], s.size[1]), r.start, &face);
    if (face != ROUND_SIDE) {
        face_normal_of(face, normal);
        return at;
    }
    point_at(r, at, normal);
    const double out = sqrt_(normal[0] * normal[0] + normal[1] * normal[1]);
    normal[2] = out > 0.0 ? out * (0.5 * s.size[0] / s.size[1]) : 1.0;
    return at;
}
