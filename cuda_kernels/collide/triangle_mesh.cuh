// Triangle mesh against convex shapes (gpusim/reference/collide/mesh_ground.py). The search for manifolds is the same
// as for height fields. The normal of a triangle points to the side that contains most of the shape. A shape that
// penetrates a triangle has a contact with the face, unless a shorter motion along another normal separates the shape.
// The code keeps a contact at an edge or corner only if no adjacent triangle rises above the plane of contact. Edges
// inside a plane or valley cause no ghost collisions.
#pragma once
#include "mesh_triangle.cuh"

// Return whether a motion along n or -n, shorter than `depth`, separates the shape from the triangle. The whole
// triangle must be on one side of the plane through x with the normal n.
GPUSIM_SHARED bool mesh_separates(const MeshScan& s, const MeshTriangle& t, const double* x, const double* n,
                                  double depth) {
    double lowest = 0.0, highest = 0.0, d[3], out[3], back[3], nearest[3], size = 0.0;
    for (int k = 0; k < 3; ++k) {
        subtract3(t.corner + 3 * k, x, d);
        const double height = dot3(d, n);
        lowest = min_(lowest, height);
        highest = max_(highest, height);
        size = max_(size, norm3(d));
    }
    const double flat = MESH_FLAT * size;
    if ((lowest < -flat) == (highest > flat)) return false;
    int vertex;
    for (int k = 0; k < 3; ++k) {
        out[k] = lowest < -flat ? n[k] : -n[k];
        back[k] = -out[k];
    }
    support(*s.body, back, nearest, &vertex);
    subtract3(x, nearest, d);
    return dot3(d, out) + s.radius < depth - FIELD_TIE * s.size;
}

// Return whether a motion along another normal is shorter than the motion along the normal of the triangle. The code
// tests the normals of adjacent triangles, and of planes through border edges.
GPUSIM_SHARED bool mesh_has_shorter_motion(const MeshScan& s, const MeshTriangle& t, const double* foot, double depth) {
    for (int k = 0; k < 3; ++k)
        for (int i = s.fan_start[t.vertex[k]]; i < s.fan_start[t.vertex[k] + 1]; ++i) {
            const int number = s.fan[i], *vertex = s.corners + 3 * number;
            double corner[9], e[3], n[3], out[3], x[3];
            for (int j = 0; j < 3; ++j) copy3(s.field->points + 3 * vertex[j], corner + 3 * j);
            mesh_normal(corner, n);
            if (mesh_separates(s, t, corner, n, depth)) return true;
            for (int j = 0; j < 3; ++j) {
                const int next = j == 2 ? 0 : j + 1;
                if (s.opposite[3 * number + j] >= 0 || (vertex[j] != t.vertex[k] && vertex[next] != t.vertex[k]))
                    continue;
                subtract3(corner + 3 * next, corner + 3 * j, e);
                cross3(e, n, out);
                const double length = norm3(out);
                for (int c = 0; c < 3; ++c) out[c] = out[c] / length;
                if (!mesh_separates(s, t, corner + 3 * j, out, depth)) continue;
                copy3(foot, x);
                mesh_onto_edge(corner + 3 * j, corner + 3 * next, x);
                if (!mesh_continues(s, x, out)) return true;
            }
        }
    return false;
}

GPUSIM_FN int mesh_feature(const MeshTriangle& t, int k) { return FIELD_CELLS + t.number % 8192 * 7 + k; }

// Clip the polygon (n corners) to the part in front of the triangle. New corners get the id -1 - edge.
GPUSIM_SHARED int mesh_clip(const MeshScan& s, const MeshTriangle& t, double* polygon, int* ids, int n) {
    double old[3 * FIELD_CORNERS];
    int old_ids[FIELD_CORNERS];
    const double space = MESH_INSIDE * s.size;
    for (int side = 0; side < 3 && n > 0; ++side) {
        for (int i = 0; i < 3 * n; ++i) old[i] = polygon[i];
        for (int i = 0; i < n; ++i) old_ids[i] = ids[i];
        int count = 0;
        for (int i = 0; i < n; ++i) {
            const int j = i + 1 == n ? 0 : i + 1;
            const double *p = old + 3 * i, *q = old + 3 * j;
            const double di = space - mesh_edge_distance(t, side, p), dj = space - mesh_edge_distance(t, side, q);
            if (di >= 0.0 && count < FIELD_CORNERS) {
                copy3(p, polygon + 3 * count);
                ids[count++] = old_ids[i];
            }
            if ((di >= 0.0) != (dj >= 0.0) && count < FIELD_CORNERS) {
                const double f = di / (di - dj);
                for (int k = 0; k < 3; ++k) polygon[3 * count + k] = p[k] + f * (q[k] - p[k]);
                ids[count++] = -1 - side;
            }
        }
        n = count;
    }
    return n;
}

// Add contacts with the face of the triangle. Return FIELD_FAR, FIELD_HIT, FIELD_MISS or MESH_PARTLY.
GPUSIM_SHARED int mesh_face(MeshScan& s, const MeshTriangle& t) {
    const double down[3] = {-t.n[0], -t.n[1], -t.n[2]};
    double nearest[3], polygon[3 * FIELD_CORNERS], foot[3];
    int ids[FIELD_CORNERS], vertex;
    support(*s.body, down, nearest, &vertex);
    for (int k = 0; k < 3; ++k) nearest[k] = nearest[k] - s.radius * t.n[k];
    const double gap = mesh_height(t, nearest);
    if (gap > s.margin) return FIELD_FAR;
    bool inside = true;
    for (int k = 0; k < 3; ++k) foot[k] = nearest[k] - gap * t.n[k];
    for (int k = 0; k < 3; ++k) inside = inside && mesh_edge_distance(t, k, foot) <= MESH_INSIDE * s.size;
    int n = face_polygon(*s.body, down, polygon, ids);
    for (int i = 0; i < 3 * n; ++i) polygon[i] = polygon[i] - s.radius * t.n[i % 3];
    n = mesh_clip(s, t, polygon, ids, n);
    if (n == 0 && !inside) return FIELD_MISS;
    if (gap < -FIELD_TIE * s.size && mesh_has_shorter_motion(s, t, foot, -gap)) return FIELD_MISS;
    bool met = false;
    for (int i = 0; i < n; ++i) {
        const double distance = mesh_height(t, polygon + 3 * i);
        const int feature = ids[i] < 0 ? mesh_feature(t, -1 - ids[i]) : ids[i];
        met = met || distance <= gap + MESH_INSIDE * s.size;
        if (distance <= s.margin) field_note_normal(s, t.n);
        if (field_may_add(s, polygon + 3 * i, distance)) field_add(s, polygon + 3 * i, t.n, distance, feature);
    }
    if (!met && inside) field_add(s, nearest, t.n, gap, FIELD_SUPPORT);
    return met || inside ? FIELD_HIT : MESH_PARTLY;
}

// Return whether n is a normal of the surface at the point x on the triangle's rim. No adjacent triangle may rise above
// the plane through x with the normal n.
GPUSIM_SHARED bool mesh_has_normal(const MeshScan& s, const MeshTriangle& t, const double* x, const double* n) {
    bool on[3];
    int count = 0, edge = 0;
    for (int k = 0; k < 3; ++k) {
        on[k] = mesh_edge_distance(t, k, x) >= -MESH_INSIDE * s.size;
        count += on[k] ? 1 : 0;
        if (on[k]) edge = k;
    }
    if (count == 0) return false;
    for (int k = 0; k < 3; ++k)
        if (on[k] && s.opposite[3 * t.number + k] < 0 && mesh_continues(s, x, t.outward + 3 * k)) return false;
    if (count == 1) {
        const int opposite = s.opposite[3 * t.number + edge];
        return !mesh_neighbor_rises(t, edge, t.corner + 3 * ((edge + 2) % 3), n)
            && (opposite < 0 || !mesh_neighbor_rises(t, edge, s.field->points + 3 * opposite, n));
    }
    const int corner = count == 3 ? mesh_nearest_corner(t, x) : (on[0] ? (on[1] ? 1 : 0) : 2);
    const int vertex = t.vertex[corner];
    for (int i = s.fan_start[vertex]; i < s.fan_start[vertex + 1]; ++i)
        for (int k = 0; k < 3; ++k)
            if (mesh_rises(t.corner + 3 * corner, s.field->points + 3 * s.corners[3 * s.fan[i] + k], n)) return false;
    return true;
}

// Clip the triangle to the region near the shape, relative to the first corner. Clipping reduces the round-off of
// triangles that are much larger than the shape. Return the number of corners.
GPUSIM_SHARED int mesh_near_part(const MeshScan& s, const MeshTriangle& t, double* polygon) {
    bool large = false;
    for (int k = 0; k < 9; ++k) {
        polygon[k] = t.corner[k] - t.corner[k % 3];
        large = large || abs_(polygon[k]) > MESH_LARGE * s.size;
    }
    int n = 3;
    for (int side = 0; side < 6 && large && n > 0; ++side) {
        const int axis = side / 2;
        const double sign = side % 2 ? -1.0 : 1.0;
        const double bound = sign * ((side % 2 ? s.lower[axis] - s.size : s.upper[axis] + s.size) - t.corner[axis]);
        double old[3 * MESH_CORNERS];
        for (int k = 0; k < 3 * n; ++k) old[k] = polygon[k];
        int count = 0;
        for (int i = 0; i < n; ++i) {
            const double *p = old + 3 * i, *q = old + 3 * (i + 1 == n ? 0 : i + 1);
            const double di = bound - sign * p[axis], dj = bound - sign * q[axis];
            if (di >= 0.0 && count < MESH_CORNERS) copy3(p, polygon + 3 * count++);
            if ((di >= 0.0) == (dj >= 0.0) || count == MESH_CORNERS) continue;
            for (int k = 0; k < 3; ++k) polygon[3 * count + k] = p[k] + di / (di - dj) * (q[k] - p[k]);
            ++count;
        }
        n = count;
    }
    return n;
}

// Make a flat hull from a polygon of the triangle.
GPUSIM_FN void mesh_hull(const MeshTriangle& t, int n, double* size, const double* points, double* normals, int* first,
                         int* vertex, Shape& out) {
    for (int k = 0; k < 3; ++k) {
        normals[k] = t.side * t.n[k];
        normals[3 + k] = -normals[k];
        first[k] = n * k;
    }
    for (int k = 0; k < n; ++k) {
        vertex[k] = k;
        vertex[n + k] = n - 1 - k;
    }
    for (int k = 0; k < 8; ++k) size[k] = 0.0;
    out.kind = SHAPE_HULL;
    out.num_points = n;
    out.num_faces = 2;
    out.size = size;
    out.points = points;
    out.face_first = first;
    out.face_vertex = vertex;
    out.face_normal = normals;
    copy3(t.corner, out.center);
    for (int k = 0; k < 9; ++k) out.rotation[k] = k % 4 == 0 ? 1.0 : 0.0;
}

// Add contacts with the edges and corners of the triangle.
GPUSIM_SHARED void mesh_rim(MeshScan& s, const MeshTriangle& t) {
    double size[8], points[3 * MESH_CORNERS], normals[6], guess[4] = {t.n[0], t.n[1], t.n[2], 0.0};
    int first[3], vertex[2 * MESH_CORNERS];
    Shape hull;
    Manifold m;
    const int n = mesh_near_part(s, t, points);
    if (n < 3) return;
    mesh_hull(t, n, size, points, normals, first, vertex, hull);
    convex_convex(hull, *s.body, s.margin, guess, m);
    for (int i = 0; i < m.count; ++i) {
        const double *a = m.a + 3 * i, *b = m.b + 3 * i;
        double d[3];
        subtract3(b, a, d);
        if (mesh_has_normal(s, t, a, m.normal)) field_add(s, b, m.normal, dot3(d, m.normal), mesh_feature(t, 3 + i));
    }
}

// Add all contacts with a triangle. Return whether the triangle may have contacts.
GPUSIM_FN bool mesh_add_contacts(MeshScan& s, int number) {
    MeshTriangle t;
    const int result = mesh_triangle(s, number, t) ? mesh_face(s, t) : FIELD_FAR;
    const bool rim = (result == FIELD_MISS || result == MESH_PARTLY) && mesh_has_ridge(s, t);
    if (rim) mesh_rim(s, t);
    return rim || result == FIELD_HIT || result == MESH_PARTLY;
}

GPUSIM_SHARED void field_scan(MeshScan& s) {
    for (int k = 0; k < 5; ++k) s.best[k].found = false;
    const bool first = s.listed < 0, all = first || s.listed > MESH_LIST;
    MeshWalk walk = mesh_walk(s, s.lower, s.upper);
    if (first) s.listed = 0;
    for (int i = 0; all || i < s.listed; ++i) {
        const int number = all ? mesh_next(s, walk) : s.list[i];
        if (number < 0) break;
        if (!mesh_add_contacts(s, number) || !first) continue;
        if (s.listed < MESH_LIST) s.list[s.listed] = number;
        s.listed += 1;
    }
}
GPUSIM_FN void field_rescue(MeshScan&, const Shape&) {}

GPUSIM_SHARED int triangle_mesh_manifolds(const Shape& mesh, const Shape& b, double margin, int max_manifolds,
                                          Manifold* out) {
    Shape body;
    MeshScan s;
    ground_prepare(mesh, b, margin, body, s, s.lower, s.upper);
    for (int k = 0; k < 3; ++k) {
        s.lower[k] = s.lower[k] - margin;
        s.upper[k] = s.upper[k] + margin;
        if (s.lower[k] > mesh.size[3 + k] || s.upper[k] < mesh.size[k]) return 0;
    }
    s.listed = -1;
    s.ball = mesh_ball(b) + margin + MESH_INSIDE * s.size;
    mesh_tables(mesh, s);
    return ground_manifolds(mesh, body, s, max_manifolds, out);
}

GPUSIM_SHARED int triangle_mesh_convex(const Shape& mesh, const Shape& b, double margin, Manifold& out) {
    out.count = 0;
    triangle_mesh_manifolds(mesh, b, margin, 1, &out);
    return out.count;
}

GPUSIM_SHARED int any_ground_manifolds(const Shape& a, const Shape& b, double margin, int max_manifolds,
                                       Manifold* out) {
    if (a.kind == SHAPE_TRIANGLE_MESH) return triangle_mesh_manifolds(a, b, margin, max_manifolds, out);
    return height_field_manifolds(a, b, margin, max_manifolds, out);
}
