// Ray against a wheel (gpusim/shapes/wheel.py).
#pragma once
#include "cylinder.cuh"

// Convex function: distance from the disk minus the radius of the edge.
struct WheelSide {
    double disk, edge;
    const Ray* ray;
    // Compute the vector from the nearest point of the disk, and return its length.
    MEMBER double from_disk(double s, double* out) const {
        point_at(*ray, s, out);
        const double radius = sqrt_(out[0] * out[0] + out[1] * out[1]), outside = radius - disk;
        for (int k = 0; k < 2; ++k) out[k] = outside > 0.0 ? out[k] * (outside / radius) : 0.0;
        return norm3(out);
    }
    MEMBER double value(double s, double* slope) const {
        double out[3];
        const double length = from_disk(s, out);
        *slope = length > 0.0 ? dot3(out, ray->direction) / length : 0.0;
        return length - edge;
    }
    MEMBER bool flat(double s, int face) const {
        const double x = along(*ray, 0, s), y = along(*ray, 1, s);
        return face != ROUND_SIDE && x * x + y * y <= disk * disk;
    }
};
GPUSIM_FN double ray_wheel(const Shape& s, const Ray& r, double* normal) {
    const WheelSide side = {s.size[0] - s.size[1], s.size[1], &r};
    int face = ROUND_SIDE;
    const double at = first_side(side, cylinder_span(r, s.size[0], s.size[1]), r.start, &face);
    if (face != ROUND_SIDE) face_normal_of(face, normal);
    else side.from_disk(at, normal);
    return at;
}
