// Support points of cores, bounds of shapes, and facing features: faces, edges or corners.
#pragma once
#include "shape.cuh"

#define FACE_COSINE 0.995     // a face faces a direction within 5.7 degrees of its normal
#define EDGE_SINE 0.1         // an edge faces a direction if their angle is between 84.3 and 95.7 degrees
#define CAP_UPRIGHT 1e-4      // the corners of a cap with a smaller tilt (rad) are fixed
#define HALF_ROOT 0.7071067811865476
#define TOP_RIM 16            // feature numbers on the sides of cylinders, cones and barrels. Caps have 0 to 15
#define BOTTOM_RIM 17

// Compute the point of the disk farthest along d, or the center if d is perpendicular to the disk.
GPUSIM_FN void disk_support(double radius, const double* d, double* out) {
    const double length = sqrt_(d[0] * d[0] + d[1] * d[1]);
    const double scale = length > 1e-12 * abs_(d[2]) ? radius / length : 0.0;
    out[0] = scale * d[0];
    out[1] = scale * d[1];
}

// Compute the point of the arc that has the normal d. If the arc has no such normal, compute a point on the rim.
GPUSIM_FN void barrel_support(const double* size, const double* d, double* out) {
    const double length = norm3(d);
    out[2] = length > 0.0 ? clamped(size[2] * (d[2] / length), -size[1], size[1]) : 0.0;
    disk_support(barrel_radius(size, out[2]), d, out);
}

// Compute the gradient of the dual norm, which consists of two nested Lp norms.
GPUSIM_SHARED void superellipsoid_support(const double* size, const double* d, double* out) {
    const double q1 = 2.0 / (2.0 - size[3]), q2 = 2.0 / (2.0 - size[4]);
    const double x = size[0] * abs_(d[0]), y = size[1] * abs_(d[1]), z = size[2] * abs_(d[2]);
    const double max_xy = max_(x, y);
    double ring = 0.0, weight_x = 0.0, weight_y = 0.0;
    if (max_xy > 0.0) {
        const double sum = det::pow(x / max_xy, q2) + det::pow(y / max_xy, q2);
        ring = max_xy * det::pow(sum, 1.0 / q2);
        weight_x = det::pow(x / ring, q2 - 1.0);
        weight_y = det::pow(y / ring, q2 - 1.0);
    }
    const double maximum = max_(ring, z);
    double weight_ring = 0.0, weight_z = 0.0;
    if (maximum > 0.0) {
        const double sum = det::pow(ring / maximum, q1) + det::pow(z / maximum, q1);
        const double norm = maximum * det::pow(sum, 1.0 / q1);
        weight_ring = det::pow(ring / norm, q1 - 1.0);
        weight_z = det::pow(z / norm, q1 - 1.0);
    }
    out[0] = size[0] * weight_ring * (d[0] < 0.0 ? -weight_x : weight_x);
    out[1] = size[1] * weight_ring * (d[1] < 0.0 ? -weight_y : weight_y);
    out[2] = size[2] * (d[2] < 0.0 ? -weight_z : weight_z);
}

GPUSIM_FN int hull_support(const Shape& s, const double* d, double* out) {
    int best = 0;
    double max_projection = -UNBOUNDED;
    for (int i = 0; i < s.num_points; ++i) {
        const double projection = dot3(s.points + 3 * i, d);
        if (projection > max_projection) { max_projection = projection; best = i; }
    }
    copy3(s.points + 3 * best, out);
    return best;
}

// Compute the support point of the core along d, in the shape frame. Return the number of the vertex for boxes and
// hulls, otherwise 0. Bit k of a box's vertex number is set if coordinate k is positive.
GPUSIM_FN int core_support(const Shape& s, const double* d, double* out) {
    const double* z = s.size;
    if (s.kind == SHAPE_HULL) return hull_support(s, d, out);
    if (s.kind == SHAPE_BOX) {
        int vertex = 0;
        for (int k = 0; k < 3; ++k) {
            out[k] = d[k] < 0.0 ? -z[k] : z[k];
            vertex += d[k] < 0.0 ? 0 : 1 << k;
        }
        return vertex;
    }
    out[0] = out[1] = out[2] = 0.0;
    if (s.kind == SHAPE_CAPSULE) {
        out[2] = d[2] < 0.0 ? -z[1] : z[1];
    } else if (s.kind == SHAPE_CYLINDER) {
        disk_support(z[0], d, out);
        out[2] = d[2] < 0.0 ? -z[1] : z[1];
    } else if (s.kind == SHAPE_CONE) {
        const bool apex = 2.0 * z[1] * d[2] >= z[0] * sqrt_(d[0] * d[0] + d[1] * d[1]);
        if (!apex) disk_support(z[0], d, out);
        out[2] = apex ? z[1] : -z[1];
    } else if (s.kind == SHAPE_ELLIPSOID) {
        const double x = z[0] * d[0], y = z[1] * d[1], w = z[2] * d[2];
        const double length = sqrt_(x * x + y * y + w * w);
        const double scale = length > 0.0 ? 1.0 / length : 0.0;
        out[0] = z[0] * (x * scale);
        out[1] = z[1] * (y * scale);
        out[2] = z[2] * (w * scale);
    } else if (s.kind == SHAPE_SUPERELLIPSOID) {
        superellipsoid_support(z, d, out);
    } else if (s.kind == SHAPE_WHEEL) {
        disk_support(z[0] - z[1], d, out);
    } else if (s.kind == SHAPE_BARREL) {
        barrel_support(z, d, out);
    }
    return 0;
}

// Compute the extents of a round shape below and above its center along the world axis k.
GPUSIM_FN void round_extents(const Shape& s, int k, double* below, double* above) {
    const double *z = s.size, axial = s.rotation[3 * k + 2], radial = sqrt_(max_(0.0, 1.0 - axial * axial));
    double low = 0.0, high = z[0];
    if (s.kind == SHAPE_SPHERE) low = z[0];
    if (s.kind == SHAPE_CAPSULE) low = high = z[0] + abs_(axial) * z[1];
    if (s.kind == SHAPE_CYLINDER) low = high = z[0] * radial + abs_(axial) * z[1];
    if (s.kind == SHAPE_WHEEL) low = high = (z[0] - z[1]) * radial + z[1];
    if (s.kind == SHAPE_CONE) {
        high = max_(axial * z[1], z[0] * radial - axial * z[1]);
        low = max_(-axial * z[1], z[0] * radial + axial * z[1]);
    }
    if (s.kind == SHAPE_BARREL) {
        const double height = min_(z[1], z[2] * abs_(axial));
        low = high = radial * barrel_radius(z, height) + abs_(axial) * height;
    }
    if (s.kind == SHAPE_ELLIPSOID) {
        const double x = s.rotation[3 * k] * z[0], y = s.rotation[3 * k + 1] * z[1], w = axial * z[2];
        low = high = sqrt_(x * x + y * y + w * w);
    }
    *below = low;
    *above = high;
}

// Compute the bounding box of a shape in the world frame, without a margin.
GPUSIM_FN void shape_bounds(const Shape& s, double* lower, double* upper) {
    if (s.kind == SHAPE_PLANE) {
        plane_bounds(s, lower, upper);
    } else if (s.kind == SHAPE_HULL) {
        hull_bounds(s, lower, upper);
    } else if (s.kind == SHAPE_HEIGHT_FIELD) {
        height_field_bounds(s, lower, upper);
    } else if (s.kind == SHAPE_BOX || s.kind == SHAPE_SUPERELLIPSOID) {
        rotated_box_bounds(s, s.size[0], s.size[1], -s.size[2], s.size[2], lower, upper);
    } else {
        for (int k = 0; k < 3; ++k) {
            double below, above;
            round_extents(s, k, &below, &above);
            lower[k] = s.center[k] - below;
            upper[k] = s.center[k] + above;
        }
    }
}

// Compute the support point of the core along a world direction of any length, in the world frame.
GPUSIM_FN void support(const Shape& s, const double* direction, double* point, int* vertex) {
    double d[3], p[3];
    rotate_back3(s.rotation, direction, d);
    *vertex = core_support(s, d, p);
    rotate3(s.rotation, p, point);
    for (int k = 0; k < 3; ++k) point[k] = s.center[k] + point[k];
}

GPUSIM_FN void set3(double* out, double x, double y, double z) {
    out[0] = x; out[1] = y; out[2] = z;
}

GPUSIM_FN void box_corner(const double* size, int vertex, double* out) {
    for (int k = 0; k < 3; ++k) out[k] = (vertex >> k) & 1 ? size[k] : -size[k];
}

// Get the face, edge or vertex of a box that faces the unit vector d, in the shape frame.
GPUSIM_FN int box_facing(const Shape& s, const double* d, double* polygon, int* ids) {
    const double size[3] = {abs_(d[0]), abs_(d[1]), abs_(d[2])};
    const int vertex = (d[0] < 0.0 ? 0 : 1) + (d[1] < 0.0 ? 0 : 2) + (d[2] < 0.0 ? 0 : 4);
    const int max_axis = size[0] >= size[1] && size[0] >= size[2] ? 0 : (size[1] >= size[2] ? 1 : 2);
    const int min_axis = size[2] <= size[0] && size[2] <= size[1] ? 2 : (size[1] <= size[0] ? 1 : 0);
    int count = 1;
    ids[0] = vertex;
    if (size[max_axis] >= FACE_COSINE) {
        // counterclockwise seen from outside
        const bool up = (vertex >> max_axis) & 1;
        const int u = 1 << (max_axis + (up ? 1 : 2)) % 3, v = 1 << (max_axis + (up ? 2 : 1)) % 3;
        const int low = up ? 1 << max_axis : 0;
        count = 4;
        ids[0] = low + u + v; ids[1] = low + v; ids[2] = low; ids[3] = low + u;
    } else if (size[min_axis] <= EDGE_SINE) {
        count = 2;
        ids[0] = vertex & ~(1 << min_axis);
        ids[1] = vertex | (1 << min_axis);
    }
    for (int i = 0; i < count; ++i) box_corner(s.size, ids[i], polygon + 3 * i);
    return count;
}

// Return the face of a hull whose normal is closest to d.
GPUSIM_FN int hull_face(const Shape& s, const double* d, double* cosine) {
    int best = 0;
    *cosine = -2.0;
    for (int f = 0; f < s.num_faces; ++f) {
        const double along = dot3(s.face_normal + 3 * f, d);
        if (along > *cosine) { *cosine = along; best = f; }
    }
    return best;
}

// Find the edge at a vertex that is most perpendicular to d. Return the other end of the edge, or -1 if no edge faces
// d.
GPUSIM_FN int hull_edge(const Shape& s, int vertex, const double* d) {
    int other = -1;
    double min_sine = EDGE_SINE;
    for (int f = 0; f < s.num_faces; ++f) {
        const int first = s.face_first[f], last = s.face_first[f + 1];
        for (int i = first; i < last; ++i) {
            // Every edge appears in two faces, once in each direction.
            const int from = s.face_vertex[i], to = s.face_vertex[i + 1 < last ? i + 1 : first];
            if (from != vertex && to != vertex) continue;
            double edge[3];
            subtract3(s.points + 3 * to, s.points + 3 * from, edge);
            const double sine = abs_(dot3(edge, d)) / norm3(edge);
            if (sine < min_sine) { min_sine = sine; other = from == vertex ? to : from; }
        }
    }
    return other;
}

GPUSIM_SHARED int hull_facing(const Shape& s, const double* d, double* polygon, int* ids) {
    double cosine;
    const int face = hull_face(s, d, &cosine);
    int count;
    if (cosine >= FACE_COSINE) {
        const int first = s.face_first[face], corners = s.face_first[face + 1] - first;
        count = corners < FACE_CORNERS ? corners : FACE_CORNERS;
        // If a face has too many corners, take evenly spaced corners.
        for (int i = 0; i < count; ++i) ids[i] = s.face_vertex[first + i * corners / count];
    } else {
        double point[3];
        const int vertex = hull_support(s, d, point), other = hull_edge(s, vertex, d);
        count = other < 0 ? 1 : 2;
        ids[0] = other < 0 || vertex < other ? vertex : other;
        if (other >= 0) ids[1] = vertex < other ? other : vertex;
    }
    for (int i = 0; i < count; ++i) copy3(s.points + 3 * ids[i], polygon + 3 * i);
    return count;
}

// Get eight corners on the rim of a cap, counterclockwise seen from outside. The corners of an upright cap are fixed to
// the shape, so that contact points do not jump.
GPUSIM_FN int cap_facing(double radius, double height, const double* d, double* polygon, int* ids) {
    const double tilt = sqrt_(d[0] * d[0] + d[1] * d[1]);
    const double x = tilt > CAP_UPRIGHT ? radius * d[0] / tilt : radius, y = tilt > CAP_UPRIGHT ? radius * d[1] / tilt : 0.0;
    const double side = d[2] < 0.0 ? -1.0 : 1.0;
    double u = x, v = y, p = HALF_ROOT * (x - side * y), q = HALF_ROOT * (y + side * x);
    for (int i = 0; i < 8; i += 2) {
        set3(polygon + 3 * i, u, v, height);
        set3(polygon + 3 * i + 3, p, q, height);
        ids[i] = d[2] < 0.0 ? 8 + i : i;
        ids[i + 1] = ids[i] + 1;
        // Rotate by 90 degrees.
        const double old_u = u, old_p = p;
        u = -side * v; v = side * old_u;
        p = -side * q; q = side * old_p;
    }
    return 8;
}

GPUSIM_FN int cylinder_facing(const Shape& s, const double* d, double* polygon, int* ids) {
    const double radius = s.size[0], half = s.size[1];
    if (abs_(d[2]) >= FACE_COSINE) return cap_facing(radius, d[2] < 0.0 ? -half : half, d, polygon, ids);
    double rim[2];
    disk_support(radius, d, rim);
    const bool side = abs_(d[2]) <= EDGE_SINE, top = side || d[2] >= 0.0;
    set3(polygon, rim[0], rim[1], top ? half : -half);
    ids[0] = top ? TOP_RIM : BOTTOM_RIM;
    if (!side) return 1;
    set3(polygon + 3, rim[0], rim[1], -half);
    ids[1] = BOTTOM_RIM;
    return 2;
}

// Get an end face, or a point on the arc or a rim.
GPUSIM_FN int barrel_facing(const Shape& s, const double* d, double* polygon, int* ids) {
    const double half = s.size[1];
    if (abs_(d[2]) >= max_(FACE_COSINE, half / s.size[2]))
        return cap_facing(barrel_radius(s.size, half), d[2] < 0.0 ? -half : half, d, polygon, ids);
    barrel_support(s.size, d, polygon);
    ids[0] = TOP_RIM;
    return 1;
}

GPUSIM_FN int cone_facing(const Shape& s, const double* d, double* polygon, int* ids) {
    const double radius = s.size[0], half = s.size[1];
    if (-d[2] >= FACE_COSINE) return cap_facing(radius, -half, d, polygon, ids);
    const double across = sqrt_(d[0] * d[0] + d[1] * d[1]);
    const double slant = sqrt_(radius * radius + 4.0 * half * half);
    // The value is positive if the apex is farther along d than the rim.
    const double rise = (2.0 * half * d[2] - radius * across) / slant;
    const bool side = abs_(rise) <= EDGE_SINE;
    double rim[2];
    disk_support(radius, d, rim);
    if (side || rise > 0.0) {
        set3(polygon, 0.0, 0.0, half);
        ids[0] = TOP_RIM;
    } else {
        set3(polygon, rim[0], rim[1], -half);
        ids[0] = BOTTOM_RIM;
    }
    if (!side) return 1;
    set3(polygon + 3, rim[0], rim[1], -half);
    ids[1] = BOTTOM_RIM;
    return 2;
}

GPUSIM_FN int capsule_facing(const Shape& s, const double* d, double* polygon, int* ids) {
    const double half = s.size[1];
    const bool side = abs_(d[2]) <= EDGE_SINE, top = side || d[2] >= 0.0;
    set3(polygon, 0.0, 0.0, top ? half : -half);
    ids[0] = top ? 0 : 1;
    if (!side) return 1;
    set3(polygon + 3, 0.0, 0.0, -half);
    ids[1] = 1;
    return 2;
}

// Like face_polygon, but relative to an origin: out = origin + rotation x_shape.
GPUSIM_SHARED int facing_from(const Shape& s, const double* direction, const double* origin, double* polygon, int* ids) {
    double d[3];
    rotate_back3(s.rotation, direction, d);
    const double length = norm3(d);
    for (int k = 0; k < 3; ++k) d[k] = d[k] / length;
    int count = 1;
    if (s.kind == SHAPE_BOX) count = box_facing(s, d, polygon, ids);
    else if (s.kind == SHAPE_HULL) count = hull_facing(s, d, polygon, ids);
    else if (s.kind == SHAPE_CYLINDER) count = cylinder_facing(s, d, polygon, ids);
    else if (s.kind == SHAPE_CONE) count = cone_facing(s, d, polygon, ids);
    else if (s.kind == SHAPE_CAPSULE) count = capsule_facing(s, d, polygon, ids);
    else if (s.kind == SHAPE_BARREL) count = barrel_facing(s, d, polygon, ids);
    else ids[0] = core_support(s, d, polygon);
    for (int i = 0; i < count; ++i) {
        rotate3(s.rotation, polygon + 3 * i, polygon + 3 * i);
        for (int k = 0; k < 3; ++k) polygon[3 * i + k] = origin[k] + polygon[3 * i + k];
    }
    return count;
}

// Get the face, edge or point of the core that faces a direction: 1 or more corners in the world
// frame, with feature numbers.
GPUSIM_FN int face_polygon(const Shape& s, const double* direction, double* polygon, int* ids) {
    return facing_from(s, direction, s.center, polygon, ids);
}
