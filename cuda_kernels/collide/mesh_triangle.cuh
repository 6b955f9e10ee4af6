// Triangles of a mesh near a convex shape, in the mesh's frame.
#pragma once
#include "field_scan.cuh"
#include "mesh_tables.cuh"

#define MESH_INSIDE 1e-6  // relative to the shape's size: tolerance for points on the rim of a triangle
#define MESH_FLAT 1e-6    // triangles are in one plane if the sine of their angle is below this
#define MESH_PROBE 1e-3   // relative to the shape's size: distance of the check beyond an open edge
#define MESH_LARGE 4.0    // relative to the shape's size: the code clips larger triangles near the shape
#define MESH_PARTLY 4     // result of mesh_face: contacts, but another triangle may be nearer
#define MESH_LIST 24
#define MESH_CORNERS 9    // maximum number of corners of a triangle after clipping along three axes

// Scan of a mesh. The box and the ball around the shape include the margin. The first scan lists the triangles that may
// have contacts. If `listed` exceeds MESH_LIST, the list is too short.
struct MeshScan : FieldScan, MeshTables {
    double lower[3], upper[3], ball;
    int listed, list[MESH_LIST];
};

// Return the radius of a ball that contains a symmetric shape and has the same center. A triangle
// outside the ball has no contact.
GPUSIM_FN double mesh_ball(const Shape& s) {
    const double* z = s.size;
    if (s.kind == SHAPE_BOX) return norm3(z);
    if (s.kind == SHAPE_CYLINDER || s.kind == SHAPE_BARREL) return sqrt_(z[0] * z[0] + z[1] * z[1]);
    return s.kind == SHAPE_HULL || s.kind == SHAPE_CONE || s.kind == SHAPE_SUPERELLIPSOID ? UNBOUNDED : shape_extent(s);
}

// Triangle with its normal n towards most of the shape. `side` is -1 if the corners run clockwise, seen from that side.
// outward: unit vectors in the plane, perpendicular to the edges.
struct MeshTriangle {
    int number;
    const int* vertex;
    double corner[9], n[3], outward[9], side;
};

// Iterator over the triangles of all leaves that overlap a box.
struct MeshWalk {
    int node, triangle, last, low[3], high[3];
};
GPUSIM_FN MeshWalk mesh_walk(const MeshScan& s, const double* lower, const double* upper) {
    MeshWalk w;
    w.node = w.triangle = w.last = 0;
    for (int k = 0; k < 3; ++k) {
        const double step = mesh_step(s.field->size, k), from = s.field->size[k];
        w.low[k] = int(clamped((lower[k] - from) / step - 1.0, 0.0, MESH_GRID));
        w.high[k] = int(clamped((upper[k] - from) / step + 1.0, 0.0, MESH_GRID));
    }
    return w;
}
// Return the next triangle, or -1.
GPUSIM_FN int mesh_next(const MeshScan& s, MeshWalk& w) {
    if (w.triangle < w.last) return w.triangle++;
    while (w.node < s.num_nodes) {
        const int* node = s.nodes + 4 * w.node;
        bool apart = false;
        for (int k = 0; k < 3; ++k)
            apart = apart || mesh_box_side(node, k) > w.high[k] || mesh_box_side(node, 3 + k) < w.low[k];
        w.node = apart && node[3] >= 0 ? node[3] : w.node + 1;
        if (apart || node[3] >= 0) continue;
        w.triangle = MESH_LEAF * (-1 - node[3]);
        w.last = w.triangle + MESH_LEAF < s.num_solid ? w.triangle + MESH_LEAF : s.num_solid;
        return w.triangle++;
    }
    return -1;
}

GPUSIM_FN double mesh_height(const MeshTriangle& t, const double* p) {
    double d[3];
    subtract3(p, t.corner, d);
    return dot3(d, t.n);
}
// Return the distance of a point from edge k along the triangle's plane, positive outside.
GPUSIM_FN double mesh_edge_distance(const MeshTriangle& t, int k, const double* p) {
    double d[3];
    subtract3(p, t.corner + 3 * k, d);
    return dot3(d, t.outward + 3 * k);
}
// Return whether q is beyond the plane through p with the normal n, by more than the tolerance.
GPUSIM_FN bool mesh_rises(const double* p, const double* q, const double* n) {
    double d[3];
    subtract3(q, p, d);
    return dot3(d, n) > FIELD_TILT * norm3(d);
}
// Compute the vector from edge k of the triangle to a point, perpendicular to the edge.
GPUSIM_FN void mesh_from_edge(const MeshTriangle& t, int k, const double* q, double* d) {
    const double* from = t.corner + 3 * k;
    double edge[3];
    subtract3(t.corner + 3 * ((k + 1) % 3), from, edge);
    subtract3(q, from, d);
    const double fraction = dot3(d, edge) / dot3(edge, edge);
    for (int c = 0; c < 3; ++c) d[c] = d[c] - fraction * edge[c];
}
// Return whether the triangle with the corner q beyond edge k rises above the plane through the edge with the normal n.
GPUSIM_FN bool mesh_neighbor_rises(const MeshTriangle& t, int k, const double* q, const double* n) {
    double d[3];
    mesh_from_edge(t, k, q, d);
    return dot3(d, n) > FIELD_TILT * norm3(d);
}
GPUSIM_FN int mesh_nearest_corner(const MeshTriangle& t, const double* p) {
    int best = 0;
    double min_square = UNBOUNDED;
    for (int k = 0; k < 3; ++k) {
        double d[3];
        subtract3(p, t.corner + 3 * k, d);
        if (dot3(d, d) < min_square) {
            min_square = dot3(d, d);
            best = k;
        }
    }
    return best;
}
// Move a point to the nearest point of an edge.
GPUSIM_FN void mesh_onto_edge(const double* from, const double* to, double* p) {
    double edge[3], d[3];
    subtract3(to, from, edge);
    subtract3(p, from, d);
    const double fraction = clamped(dot3(d, edge) / dot3(edge, edge), 0.0, 1.0);
    for (int c = 0; c < 3; ++c) p[c] = from[c] + fraction * edge[c];
}

// Compute the unit normal of a triangle whose corners run counterclockwise.
GPUSIM_FN void mesh_normal(const double* corner, double* n) {
    double e[3], f[3];
    subtract3(corner + 3, corner, e);
    subtract3(corner + 6, corner, f);
    cross3(e, f, n);
    const double length = norm3(n);
    for (int k = 0; k < 3; ++k) n[k] = n[k] / length;
}

// Return the height of the shape's middle above the plane of a triangle.
GPUSIM_FN double mesh_body_height(const MeshScan& s, const MeshTriangle& t) {
    if (s.body->kind != SHAPE_HULL && s.body->kind != SHAPE_CONE) return mesh_height(t, s.body->center);
    const double down[3] = {-t.n[0], -t.n[1], -t.n[2]};
    double high[3], low[3];
    int vertex;
    support(*s.body, t.n, high, &vertex);
    support(*s.body, down, low, &vertex);
    return 0.5 * (mesh_height(t, high) + mesh_height(t, low));
}

// Get a triangle. Return false if the triangle does not reach the box and the ball around the shape.
GPUSIM_SHARED bool mesh_triangle(const MeshScan& s, int number, MeshTriangle& t) {
    t.number = number;
    t.vertex = s.corners + 3 * number;
    for (int k = 0; k < 3; ++k) copy3(s.field->points + 3 * t.vertex[k], t.corner + 3 * k);
    const double* c = t.corner;
    double e[3], square = 0.0;
    for (int k = 0; k < 3; ++k) {
        const double low = min_(min_(c[k], c[3 + k]), c[6 + k]), high = max_(max_(c[k], c[3 + k]), c[6 + k]);
        if (low > s.upper[k] || high < s.lower[k]) return false;
        const double d = max_(max_(low - s.body->center[k], s.body->center[k] - high), 0.0);
        square = square + d * d;
    }
    if (square > s.ball * s.ball) return false;
    mesh_normal(c, t.n);
    t.side = mesh_body_height(s, t) < 0.0 ? -1.0 : 1.0;
    for (int k = 0; k < 3; ++k) {
        double* out = t.outward + 3 * k;
        subtract3(c + 3 * ((k + 1) % 3), c + 3 * k, e);
        cross3(e, t.n, out);
        const double size = norm3(out);
        for (int j = 0; j < 3; ++j) out[j] = out[j] / size;
    }
    for (int k = 0; k < 3; ++k) t.n[k] = t.side * t.n[k];
    return true;
}

// Return whether an edge of the triangle is a ridge or the border of the mesh. Otherwise, edges and corners have no
// contacts.
GPUSIM_FN bool mesh_has_ridge(const MeshScan& s, const MeshTriangle& t) {
    for (int k = 0; k < 3; ++k) {
        const int opposite = s.opposite[3 * t.number + k];
        if (opposite < 0) return true;
        double d[3];
        mesh_from_edge(t, k, s.field->points + 3 * opposite, d);
        if (dot3(d, t.n) < -MESH_FLAT * norm3(d)) return true;
    }
    return false;
}

// Return whether the distance between a triangle and a point is at most ``distance``.
GPUSIM_SHARED bool mesh_is_near(const MeshScan& s, const double* p, double distance) {
    double lower[3], upper[3], corner[9], weight[3], v[3];
    for (int k = 0; k < 3; ++k) {
        lower[k] = p[k] - distance;
        upper[k] = p[k] + distance;
    }
    MeshWalk walk = mesh_walk(s, lower, upper);
    for (int number = mesh_next(s, walk); number >= 0; number = mesh_next(s, walk)) {
        const int* vertex = s.corners + 3 * number;
        for (int k = 0; k < 3; ++k) subtract3(s.field->points + 3 * vertex[k], p, corner + 3 * k);
        weigh_triangle(corner, corner + 3, corner + 6, weight, v);
        if (dot3(v, v) <= distance * distance) return true;
    }
    return false;
}
// Return whether other triangles are close to a border edge at x, on the outer side of the edge.
GPUSIM_SHARED bool mesh_continues(const MeshScan& s, const double* x, const double* outward) {
    const double probe = MESH_PROBE * s.size;
    double p[3];
    for (int k = 0; k < 3; ++k) p[k] = x[k] + probe * outward[k];
    return mesh_is_near(s, p, 0.1 * probe);
}

// Return whether the surface at x blocks a shape that slides along the contact ``other``.
GPUSIM_SHARED bool field_blocks(const MeshScan& s, const FieldPoint& other, const FieldPoint& x) {
    const double *up = other.n, step = FIELD_STEP * s.size, cosine = dot3(up, x.n);
    const double square = 1.0 - cosine * cosine, distance = (cosine * x.gap - other.gap + 4.0 * step) / square;
    double q[3];
    if (other.gap > x.gap + step || !field_is_lowest(s, x.b, up)) return true;
    for (int k = 0; k < 3; ++k) q[k] = x.b[k] - x.gap * x.n[k] + distance * (up[k] - cosine * x.n[k]);
    return mesh_is_near(s, q, 2.0 * step);
}
