// Input and output of the narrow phase: a shape with its pose, and the contact points of a pair. All numbers are
// double, in SI units and in the world frame.
#pragma once
#include "../math/platform.cuh"
#include "../math/rotations.cuh"

#define FACE_CORNERS 16  // maximum number of corners of a facing polygon
#define UNBOUNDED 1e30

struct Shape {
    int kind;
    int num_points, num_faces;
    const double* size;           // the 8 sizes of the shape kind
    const double* points;         // hull: vertices (num_points, 3), height field: heights (num_points)
    const int* face_first;        // hull: the vertices of face f are face_vertex[face_first[f] .. face_first[f + 1]),
    const int* face_vertex;       //   counterclockwise seen from outside
    const double* face_normal;    // hull: outward unit normals (num_faces, 3)
    double center[3], rotation[9];  // x_world = center + rotation x_shape
};

// Contact points. The gap of point k is normal . (b_k - a_k), negative for overlap. b_k -
// a_k is parallel to the normal.
struct Manifold {
    int count;
    double normal[3];       // unit, from A to B
    double a[12], b[12];    // points on A's and on B's surface
    int feature[4];         // feature numbers, different for each point, and the same in the next step
};

// Return the radius that inflates the core of a shape.
GPUSIM_FN double core_radius(const Shape& s) {
    if (s.kind == SHAPE_SPHERE || s.kind == SHAPE_CAPSULE) return s.size[0];
    if (s.kind == SHAPE_WHEEL) return s.size[1];
    return 0.0;
}

// Return the radius of a barrel at a height.
GPUSIM_FN double barrel_radius(const double* size, double height) {
    const double square = height * height;
    return size[0] - square / (size[2] + sqrt_(size[2] * size[2] - square));
}

// Return the length scale of the tolerances: about the maximum extent of the shape from its center.
GPUSIM_FN double shape_extent(const Shape& s) {
    const double* z = s.size;
    if (s.kind == SHAPE_SPHERE || s.kind == SHAPE_WHEEL) return z[0];
    if (s.kind == SHAPE_CAPSULE) return z[0] + z[1];
    if (s.kind == SHAPE_CYLINDER || s.kind == SHAPE_CONE || s.kind == SHAPE_BARREL) return max_(z[0], z[1]);
    if (s.kind == SHAPE_HULL) {
        // A cheap estimate is half the distance of two vertices.
        const double* p = s.points + 3 * (s.num_points / 2);
        const double d[3] = {p[0] - s.points[0], p[1] - s.points[1], p[2] - s.points[2]};
        return 0.5 * norm3(d);
    }
    return max_(max_(z[0], z[1]), z[2]);
}

GPUSIM_FN void plane_bounds(const Shape& s, double* lower, double* upper) {
    for (int k = 0; k < 3; ++k) {
        const double other = abs_(s.rotation[3 * ((k + 1) % 3) + 2]) + abs_(s.rotation[3 * ((k + 2) % 3) + 2]);
        lower[k] = other == 0.0 && s.rotation[3 * k + 2] < 0.0 ? s.center[k] : -UNBOUNDED;
        upper[k] = other == 0.0 && s.rotation[3 * k + 2] > 0.0 ? s.center[k] : UNBOUNDED;
    }
}

// Compute the bounds of the box (+-x, +-y, low to high) in the shape frame.
GPUSIM_FN void rotated_box_bounds(const Shape& s, double x, double y, double low, double high, double* lower,
                                 double* upper) {
    for (int k = 0; k < 3; ++k) {
        const double* row = s.rotation + 3 * k;
        const double middle = row[2] * (0.5 * (low + high));
        const double half_extent = abs_(row[0]) * x + abs_(row[1]) * y + abs_(row[2]) * (0.5 * (high - low));
        lower[k] = s.center[k] + middle - half_extent;
        upper[k] = s.center[k] + middle + half_extent;
    }
}

GPUSIM_FN void hull_bounds(const Shape& s, double* lower, double* upper) {
    for (int k = 0; k < 3; ++k) { lower[k] = UNBOUNDED; upper[k] = -UNBOUNDED; }
    for (int i = 0; i < s.num_points; ++i) {
        double x[3];
        rotate3(s.rotation, s.points + 3 * i, x);
        for (int k = 0; k < 3; ++k) {
            lower[k] = min_(lower[k], s.center[k] + x[k]);
            upper[k] = max_(upper[k], s.center[k] + x[k]);
        }
    }
}

GPUSIM_FN void height_field_bounds(const Shape& s, double* lower, double* upper) {
    double low = s.size[4], high = s.size[4];
    for (int i = 0; i < s.num_points; ++i) {
        low = min_(low, s.points[i]);
        high = max_(high, s.points[i]);
    }
    const double x = 0.5 * (s.size[0] - 1.0) * s.size[2], y = 0.5 * (s.size[1] - 1.0) * s.size[3];
    rotated_box_bounds(s, x, y, low, high, lower, upper);
}
