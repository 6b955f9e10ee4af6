// Paths of ropes around spheres and cylinders (equations: gpusim/reference/joints/wrapping.py).
#pragma once
#include "../math/detmath.cuh"
#include "../math/rotations.cuh"

// Input of a path: both ends, two axes of the surface, side point, center.
#define WRAP_INPUTS 18
// Output of a path: both contact points, and the arc.
#define WRAP_OUTPUTS 7

// Circle on a surface, with the ends and the side point projected to its plane.
struct WrapCircle {
    double radius, a[2], b[2], side[2];
};
GPUSIM_FN double cross2(const double* a, const double* b) { return a[0] * b[1] - a[1] * b[0]; }
GPUSIM_FN double dot2(const double* a, const double* b) { return a[0] * b[0] + a[1] * b[1]; }
GPUSIM_FN double arcsine(double x) { return det::atan2(x, sqrt_(max_(1.0 - x * x, 0.0))); }

// Return the square of the distance between the center and the segment between the ends.
GPUSIM_FN double clearance(const WrapCircle& c) {
    const double along[2] = {c.b[0] - c.a[0], c.b[1] - c.a[1]}, square = dot2(along, along);
    const double fraction = clamped(-dot2(along, c.a) / (square > 0.0 ? square : 1.0), 0.0, 1.0);
    const double near[2] = {c.a[0] + fraction * along[0], c.a[1] + fraction * along[1]};
    return dot2(near, near);
}
GPUSIM_FN void tangent_point(const double* end, double square, double radius, double room, double* out) {
    const double offset = radius * sqrt_(max_(room, 0.0)), over = dot2(end, end);
    out[0] = (square * end[0] + offset * -end[1]) / over;
    out[1] = (square * end[1] + offset * end[0]) / over;
}
// Compute both contact points and the angle of the arc. Return whether the path touches the circle.
GPUSIM_FN bool wrap_outside(const WrapCircle& c, bool sided, double* first, double* second, double* angle) {
    const double square = c.radius * c.radius, sense = cross2(c.a, c.b);
    const double room_a = dot2(c.a, c.a) - square, room_b = dot2(c.b, c.b) - square;
    const bool behind = sided && cross2(c.a, c.side) * sense < 0.0 && cross2(c.side, c.b) * sense < 0.0;
    if (!(room_a >= 0.0 && room_b >= 0.0 && (behind || clearance(c) <= square))) return false;
    const double direction = (sense >= 0.0) != behind ? 1.0 : -1.0;
    tangent_point(c.a, square, direction * c.radius, room_a, first);
    tangent_point(c.b, square, -direction * c.radius, room_b, second);
    const double arc_angle = det::atan2(direction * cross2(first, second), dot2(first, second));
    *angle = arc_angle < -WRAP_ROUNDING ? arc_angle + det::TWO_PI : max_(arc_angle, 0.0);
    return true;
}
// Compute the contact point of a path inside the circle. Return whether the path touches the circle.
GPUSIM_FN bool wrap_inside(const WrapCircle& c, double* point) {
    const double length_a = sqrt_(dot2(c.a, c.a)), length_b = sqrt_(dot2(c.b, c.b));
    if (!(length_a > c.radius && length_b > c.radius && clearance(c) > c.radius * c.radius)) return false;
    const double ratio_a = c.radius / length_a, ratio_b = c.radius / length_b, sense = cross2(c.a, c.b);
    const double between = det::atan2(abs_(sense), dot2(c.a, c.b));
    double angle = 0.5 * det::PI;
    GPUSIM_ROLLED for (int pass = 0; pass < WRAP_NEWTON; ++pass) {
        const double sine = det::sin(angle), cosine = det::cos(angle), sine_a = ratio_a * sine, sine_b = ratio_b * sine;
        const double value = 2.0 * angle - arcsine(sine_a) - arcsine(sine_b) - between;
        const double slope = 2.0 - ratio_a * cosine / sqrt_(1.0 - sine_a * sine_a) - ratio_b * cosine / sqrt_(1.0 - sine_b * sine_b);
        if (!(value > 0.0 && slope > 0.0)) break;
        const double change = value / slope;
        angle = angle - change;
        if (!(change > WRAP_SETTLED)) break;
    }
    const double rotated = (sense > 0.0 ? 1.0 : -1.0) * (angle - arcsine(ratio_a * det::sin(angle)));
    const double cosine = det::cos(rotated), sine = det::sin(rotated), unit[2] = {c.a[0] / length_a, c.a[1] / length_a};
    point[0] = c.radius * (cosine * unit[0] - sine * unit[1]);
    point[1] = c.radius * (sine * unit[0] + cosine * unit[1]);
    return true;
}
// Compute the axes of the plane of the circle. Return false if an end is at the center of a sphere.
GPUSIM_FN bool wrap_plane(bool cylinder, const double* a, const double* b, const double* frame, double* x, double* y) {
    const double length_a = norm3(a), length_b = norm3(b);
    if ((length_a < length_b ? length_a : length_b) < WRAP_MIN) return false;
    copy3(frame, x);
    copy3(frame + 3, y);
    if (cylinder) return true;
    double normal[3];
    for (int k = 0; k < 3; ++k) x[k] = a[k] / length_a;
    cross3(a, b, normal);
    // If the ends and the center are on one line, any plane works.
    if (norm3(normal) < WRAP_MIN) cross3(x, abs_(dot3(x, frame)) < 0.9 ? frame : frame + 3, normal);
    cross3(normal, x, y);
    const double length = norm3(y);
    for (int k = 0; k < 3; ++k) y[k] = y[k] / length;
    return true;
}
// Compute a path from WRAP_INPUTS numbers to WRAP_OUTPUTS numbers, relative to the center, in the world frame.
GPUSIM_SHARED void wrap_around(bool cylinder, bool sided, double radius, const double* in, double* out) {
    const double *a = in, *b = in + 3, *side = in + 12;
    double x[3], y[3], z[3], touch[4], arc = 0.0;
    bool wraps = radius > WRAP_MIN && wrap_plane(cylinder, a, b, in + 6, x, y);
    if (wraps) {
        cross3(x, y, z);
        const WrapCircle c = {radius, {dot3(a, x), dot3(a, y)}, {dot3(b, x), dot3(b, y)}, {dot3(side, x), dot3(side, y)}};
        if (sided && norm3(side) < radius) {
            wraps = wrap_inside(c, touch);
            touch[2] = touch[0], touch[3] = touch[1];
        } else {
            wraps = wrap_outside(c, sided, touch, touch + 2, &arc);
            arc = radius * arc;
        }
        if (wraps) {
            const double out_a[2] = {c.a[0] - touch[0], c.a[1] - touch[1]}, out_b[2] = {c.b[0] - touch[2], c.b[1] - touch[3]};
            const double leg_a = sqrt_(dot2(out_a, out_a)), leg_b = sqrt_(dot2(out_b, out_b)), low = dot3(a, z);
            // on a cylinder, the axial position is proportional to the path length (helix)
            const double climb = (dot3(b, z) - low) / (leg_a + arc + leg_b);
            const double high_a = low + climb * leg_a, high_b = low + climb * (leg_a + arc), rise = cylinder ? climb * arc : 0.0;
            for (int k = 0; k < 3; ++k) {
                out[k] = touch[0] * x[k] + touch[1] * y[k];
                out[3 + k] = touch[2] * x[k] + touch[3] * y[k];
                if (cylinder) out[k] = out[k] + high_a * z[k], out[3 + k] = out[3 + k] + high_b * z[k];
            }
            out[6] = sqrt_(arc * arc + rise * rise);
        }
    }
    if (wraps) return;
    for (int k = 0; k < 3; ++k) out[k] = out[3 + k] = 0.5 * (a[k] + b[k]);
    out[6] = 0.0;
}

// Get the WRAP_INPUTS numbers of path i. ``at`` returns positions and vectors of bodies in the world frame.
template <class W, class Poses, class T> GPUSIM_FN void wrap_inputs(const W& w, const Poses& at, int i, T* in) {
    const int body = w.wrap_body()[i], side = w.wrap_side_body()[i];
    T* center = in + 15;
    at.world_point(body, w.wrap_center() + 3 * i, center);
    at.world_point(w.wrap_body_a()[i], w.wrap_vector_a() + 3 * i, in);
    at.world_point(w.wrap_body_b()[i], w.wrap_vector_b() + 3 * i, in + 3);
    at.world_vector(body, w.wrap_axis_x() + 3 * i, in + 6);
    at.world_vector(body, w.wrap_axis_y() + 3 * i, in + 9);
    at.world_point(side < 0 ? body : side, w.wrap_side() + 3 * i, in + 12);
    for (int k = 0; k < 3; ++k) {
        in[k] = in[k] - center[k];
        in[3 + k] = in[3 + k] - center[k];
        in[12 + k] = in[12 + k] - center[k];
    }
}
