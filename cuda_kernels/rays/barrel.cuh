// Ray against a barrel (gpusim/shapes/barrel.py).
#pragma once
#include "cylinder.cuh"

// Distance of a point from the axis, minus the radius of the barrel at the height of the point. Along a line, the
// function is convex.
struct BarrelSide {
    const double* size;
    const Ray* ray;
    // Return -d(radius)/d(height).
    MEMBER double fall(double height) const { return height / sqrt_(size[2] * size[2] - height * height); }
    MEMBER double value(double s, double* slope) const {
        const double x = along(*ray, 0, s), y = along(*ray, 1, s), out = sqrt_(x * x + y * y);
        const double height = clamped(along(*ray, 2, s), -size[1], size[1]);
        *slope = fall(height) * ray->direction[2];
        if (out > 0.0) *slope += (x * ray->direction[0] + y * ray->direction[1]) / out;
        return out - barrel_radius(size, height);
    }
    MEMBER bool flat(double s, int face) const {
        const double x = along(*ray, 0, s), y = along(*ray, 1, s), end = barrel_radius(size, size[1]);
        return face != ROUND_SIDE && x * x + y * y <= end * end;
    }
};
GPUSIM_FN double ray_barrel(const Shape& s, const Ray& r, double* normal) {
    const BarrelSide side = {s.size, &r};
    int face = ROUND_SIDE;
    const double at = first_side(side, cylinder_span(r, s.size[0], s.size[1]), r.start, &face);
    if (face != ROUND_SIDE) {
        face_normal_of(face, normal);
        return at;
    }
    point_at(r, at, normal);
    const double out = sqrt_(normal[0] * normal[0] + normal[1] * normal[1]);
    normal[2] = out * side.fall(clamped(normal[2], -s.size[1], s.size[1]));
    return at;
}
