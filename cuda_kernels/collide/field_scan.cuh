// Contacts of the triangles of a height field with a convex shape, in the frame of the field. A point of the shape
// above or below a triangle makes contact with the face. The gap is along the normal of the triangle. A point above the
// surface counts only if the foot of its perpendicular to the triangle is on or below the surface. The scan keeps a
// contact at an edge or corner only if the normal is between the normals of the adjacent triangles. Edges in a plane or
// valley cause no ghost collisions.
#pragma once
#include "field_triangle.cuh"

GPUSIM_FN void field_store(FieldPoint& slot, const double* b, const double* n, double gap, double score, int feature) {
    for (int k = 0; k < 3; ++k) {
        slot.b[k] = b[k];
        slot.n[k] = n[k];
    }
    slot.gap = gap;
    slot.score = score;
    slot.feature = feature;
    slot.found = true;
}

// Return whether a normal is close to the normal of an earlier manifold.
GPUSIM_FN bool field_is_known(const FieldScan& s, const double* n) {
    for (int m = 0; m < s.known; ++m)
        if (dot3(n, s.seeds[m].n) > FIELD_CONE) return true;
    return false;
}
// Record the normal of a triangle that the shape can reach.
GPUSIM_FN void field_note_normal(FieldScan& s, const double* n) {
    if (s.spread || s.max_manifolds == 1 || field_is_known(s, n)) return;
    if (!s.seen) copy3(n, s.first);
    s.seen = true;
    s.others = s.others || dot3(n, s.first) < FIELD_NEAR;
}
// Return whether b is the lowest point of the shape along n.
GPUSIM_SHARED bool field_is_lowest(const FieldScan& s, const double* b, const double* n) {
    const double down[3] = {-n[0], -n[1], -n[2]};
    double lowest[3];
    int vertex;
    support(*s.body, down, lowest, &vertex);
    return dot3(b, n) - (dot3(lowest, n) - s.radius) <= FIELD_LOWEST * s.size;
}
// Return whether the ground at x blocks a shape that slides along the contact ``other``. The edge of a groove under a
// box must not block the box.
GPUSIM_SHARED bool field_blocks(const FieldScan& s, const FieldPoint& other, const FieldPoint& x) {
    const double *up = other.n, step = FIELD_STEP * s.size, cosine = dot3(up, x.n);
    const double square = 1.0 - cosine * cosine, distance = (cosine * x.gap - other.gap + 4.0 * step) / square;
    double q[3], rise = other.gap;
    FieldTriangle t;
    if (other.gap > x.gap + step || !field_is_lowest(s, x.b, up)) return true;
    for (int k = 0; k < 3; ++k) q[k] = x.b[k] - x.gap * x.n[k] + distance * (up[k] - cosine * x.n[k]);
    if (!field_at(s, q, t)) return true;
    q[2] = q[2] - plane_gap(t, q) / t.n[2];
    for (int k = 0; k < 3; ++k) rise = rise + (q[k] - x.b[k]) * up[k];
    return rise >= step;
}
// Return whether a contact belongs to a new manifold.
template <class Scan> GPUSIM_SHARED bool field_is_new_manifold(const Scan& s, const FieldPoint& x) {
    if (!field_is_lowest(s, x.b, x.n)) return false;
    for (int m = 0; m < s.known; ++m)
        if (!field_blocks(s, s.seeds[m], x)) return false;
    return true;
}

// Return whether the scan may keep a contact with this gap.
GPUSIM_FN bool field_may_add(const FieldScan& s, const double* b, double gap) {
    if (gap > s.margin) return false;
    const double tie = FIELD_TIE * s.size;
    if (!s.spread) return !s.best[4].found || -gap > s.best[4].score + tie;
    if (s.radius > 0.0) return true;  // the surface point of a rounded shape depends on the normal
    const double x = dot3(b, s.along), y = dot3(b, s.across), penalty = s.weight * max_(gap, 0.0);
    for (int k = 0; k < 4; ++k)
        if (!s.best[k].found || (k == 0 ? x : (k == 1 ? y : (k == 2 ? -x : -y))) - penalty > s.best[k].score + tie) return true;
    return false;
}

// Keep a contact with the normal n at the point b of the shape, if the current search looks for such a contact.
template <class Scan>
GPUSIM_SHARED void field_add(Scan& s, const double* b, const double* n, double gap, int feature) {
    if (gap > s.margin || field_is_known(s, n)) return;
    field_note_normal(s, n);
    const double tie = FIELD_TIE * s.size;
    if (!s.spread) {
        if (s.best[4].found && !(-gap > s.best[4].score + tie)) return;
        FieldPoint x;
        field_store(x, b, n, gap, -gap, feature);
        if (s.known == 0 || field_is_new_manifold(s, x)) s.best[4] = x;
        return;
    }
    if (dot3(n, s.seeds[s.known].n) < FIELD_CONE) return;
    const double x = dot3(b, s.along), y = dot3(b, s.across), penalty = s.weight * max_(gap, 0.0);
    for (int k = 0; k < 4; ++k) {
        const double score = (k == 0 ? x : (k == 1 ? y : (k == 2 ? -x : -y))) - penalty;
        if (!s.best[k].found || score > s.best[k].score + tie) field_store(s.best[k], b, n, gap, score, feature);
    }
}

GPUSIM_FN int field_feature(const FieldScan& s, const FieldTriangle& t, int k) {
    const int cell = (t.row * s.columns + t.column) % 4096;
    return FIELD_CELLS + (2 * cell + t.half) * 7 + k;
}

// Clip the polygon (n corners) to the triangle, seen from above. New corners get the id -1 - edge.
GPUSIM_SHARED int field_clip(const FieldScan& s, const FieldTriangle& t, double* polygon, int* ids, int n) {
    double old[3 * FIELD_CORNERS];
    int old_ids[FIELD_CORNERS];
    for (int side = 0; side < 3 && n > 0; ++side) {
        for (int i = 0; i < 3 * n; ++i) old[i] = polygon[i];
        for (int i = 0; i < n; ++i) old_ids[i] = ids[i];
        int count = 0;
        for (int i = 0; i < n; ++i) {
            const int j = i + 1 == n ? 0 : i + 1;
            const double *p = old + 3 * i, *q = old + 3 * j;
            const double di = field_weight(s, t, p, side) + FIELD_INSIDE;
            const double dj = field_weight(s, t, q, side) + FIELD_INSIDE;
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

// Add contacts with the face of the triangle. Return FIELD_FAR, FIELD_HIT, FIELD_MISS or FIELD_CANDIDATE.
GPUSIM_SHARED int field_face(FieldScan& s, const FieldTriangle& t) {
    const double down[3] = {-t.n[0], -t.n[1], -t.n[2]};
    double nearest[3], polygon[3 * FIELD_CORNERS];
    int ids[FIELD_CORNERS], vertex;
    support(*s.body, down, nearest, &vertex);
    for (int k = 0; k < 3; ++k) nearest[k] = nearest[k] - s.radius * t.n[k];
    const double gap = plane_gap(t, nearest);
    if (gap > s.margin) return FIELD_FAR;
    field_note_normal(s, t.n);
    int n = face_polygon(*s.body, down, polygon, ids);
    for (int i = 0; i < 3 * n; ++i) polygon[i] = polygon[i] - s.radius * t.n[i % 3];
    n = field_clip(s, t, polygon, ids, n);
    for (int i = 0; i < n; ++i) {
        const int feature = ids[i] < 0 ? field_feature(s, t, -1 - ids[i]) : ids[i];
        double along[3], distance = plane_gap(t, polygon + 3 * i);
        if (!field_may_add(s, polygon + 3 * i, distance)) continue;
        copy3(t.n, along);
        if (distance > 0.0 && !field_past_ridge(s, t, polygon + 3 * i, along, &distance)) continue;
        field_add(s, polygon + 3 * i, along, distance, feature);
    }
    const int result = field_classify(s, t, nearest, gap);
    if (result != FIELD_HIT) return result;
    field_add(s, nearest, t.n, gap, FIELD_SUPPORT);
    double foot[3];
    field_foot(t, nearest, gap, foot);
    return gap > 0.0 && field_crosses_ridge(s, t, foot) ? FIELD_MISS : FIELD_HIT;
}

// Extrude the triangle downward to a prism.
GPUSIM_FN void field_prism(const FieldScan& s, const FieldTriangle& t, double* size, double* points, double* normals,
                           int* first, int* vertex, Shape& out) {
    for (int k = 0; k < 9; ++k) {
        points[k] = t.corner[k];
        points[9 + k] = k % 3 == 2 ? t.corner[k] - s.depth : t.corner[k];
    }
    for (int k = 0; k < 3; ++k) {
        const int next = k == 2 ? 0 : k + 1;
        const double x = t.corner[3 * next] - t.corner[3 * k], y = t.corner[3 * next + 1] - t.corner[3 * k + 1];
        const double length = sqrt_(x * x + y * y);
        normals[k] = t.n[k];
        normals[3 + k] = -t.n[k];
        normals[6 + 3 * k] = y / length;
        normals[7 + 3 * k] = -x / length;
        normals[8 + 3 * k] = 0.0;
        vertex[k] = k;
        vertex[3 + k] = 5 - k;
        vertex[6 + 4 * k] = k;
        vertex[7 + 4 * k] = 3 + k;
        vertex[8 + 4 * k] = 3 + next;
        vertex[9 + 4 * k] = next;
    }
    first[0] = 0; first[1] = 3; first[2] = 6; first[3] = 10; first[4] = 14; first[5] = 18;
    for (int k = 0; k < 8; ++k) size[k] = 0.0;
    out.kind = SHAPE_HULL;
    out.num_points = 6;
    out.num_faces = 5;
    out.size = size;
    out.points = points;
    out.face_first = first;
    out.face_vertex = vertex;
    out.face_normal = normals;
    for (int k = 0; k < 9; ++k) {
        if (k < 3) out.center[k] = 0.0;
        out.rotation[k] = k % 4 == 0 ? 1.0 : 0.0;
    }
}

// Add contacts with the edges and corners of the triangle. With ``aside``, also add a contact with the face.
GPUSIM_SHARED void field_ridge(FieldScan& s, const FieldTriangle& t, bool aside) {
    double size[8], points[18], normals[15], guess[4] = {t.n[0], t.n[1], t.n[2], 0.0};
    int first[6], vertex[18];
    Shape prism;
    Manifold m;
    field_prism(s, t, size, points, normals, first, vertex, prism);
    convex_convex(prism, *s.body, s.margin, guess, m);
    for (int i = 0; i < m.count; ++i) {
        const double *a = m.a + 3 * i, *b = m.b + 3 * i;
        if (abs_(plane_gap(t, a)) > FIELD_TIE * (s.dx + s.dy)) continue;
        int large = 0, low = 0, high = 0;
        for (int k = 0; k < 3; ++k) {
            const double weight = field_weight(s, t, a, k);
            if (weight > FIELD_TIE) {
                large += 1;
                high = k;
            } else {
                low = k;
            }
        }
        if (large == 3 ? !aside || dot3(t.n, m.normal) < FIELD_UPRIGHT : large == 0) continue;
        const int k = large == 1 ? high : (low == 2 ? 0 : low + 1);
        if (large < 3 && !field_has_normal(s, t, k, large == 2, m.normal)) continue;
        double gap = 0.0;
        for (int c = 0; c < 3; ++c) gap = gap + m.normal[c] * (b[c] - a[c]);
        field_add(s, b, m.normal, gap, field_feature(s, t, 3 + i));
    }
}

// Scan all triangles under the shape's bounds.
GPUSIM_SHARED void field_scan(FieldScan& s) {
    for (int k = 0; k < 5; ++k) s.best[k].found = false;
    FieldTriangle t;
    for (int row = s.first_row; row <= s.last_row; ++row)
        for (int column = s.first_column; column <= s.last_column; ++column) {
            const double* h = s.field->points + row * s.columns + column;
            const double high = max_(max_(h[0], h[1]), max_(h[s.columns], h[s.columns + 1]));
            if (s.low > high + s.margin) continue;
            for (int half = 0; half < 2; ++half) {
                field_triangle(s, column, row, half, t);
                const int result = field_face(s, t);
                if (result >= FIELD_MISS && field_has_ridge(s, t)) field_ridge(s, t, result == FIELD_CANDIDATE);
            }
        }
}
