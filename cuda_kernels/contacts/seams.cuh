// Contacts at the seams of tiles (gpusim/reference/contacts/seams.py). Points and normals are in the body's frame.
#pragma once
#include "narrow_phase.cuh"

// Transform a point of the body frame to the frame of a shape.
GPUSIM_FN void to_tile_frame(const World& w, int tile, const double* x, double* out) {
    subtract3(x, w.shape_center() + 3 * tile, out);
    rotate_back3(w.shape_frame() + 9 * tile, out, out);
}
// Cell of a height field, and a position in this cell.
struct SeamCell {
    int columns, rows, column, row;
    double at[2], u, v;
};
GPUSIM_FN void seam_cell(const Shape& s, const double* y, SeamCell& c) {
    c.columns = int(s.size[0]);
    c.rows = int(s.size[1]);
    c.at[0] = clamped(y[0] / s.size[2] + 0.5 * (c.columns - 1), 0.0, c.columns - 1.0);
    c.at[1] = clamped(y[1] / s.size[3] + 0.5 * (c.rows - 1), 0.0, c.rows - 1.0);
    c.column = int(min_(c.at[0], c.columns - 2.0));
    c.row = int(min_(c.at[1], c.rows - 2.0));
    c.u = c.at[0] - c.column;
    c.v = c.at[1] - c.row;
}
// Return the height of the surface below a point. Outside the field, return the height of the rim.
GPUSIM_FN double seam_height(const Shape& s, const double* y) {
    SeamCell c;
    seam_cell(s, y, c);
    const double *low = s.points + c.row * c.columns + c.column, *up = low + c.columns;
    if (c.v > c.u) return low[0] + c.u * (up[1] - up[0]) + c.v * (up[0] - low[0]);
    return low[0] + c.u * (low[1] - low[0]) + c.v * (up[1] - low[1]);
}
// Return whether the distance between a point and a tile is at most ``space``. The test is less strict at sharp
// corners.
GPUSIM_SHARED bool seam_contains(const World& w, int tile, const double* x, double space) {
    double y[3];
    Shape s;
    to_tile_frame(w, tile, x, y);
    describe_shape(w, tile, s);
    if (s.kind == SHAPE_PLANE) return y[2] <= space;
    if (s.kind == SHAPE_BOX)
        return abs_(y[0]) - s.size[0] <= space && abs_(y[1]) - s.size[1] <= space
            && abs_(y[2]) - s.size[2] <= space;
    if (s.kind == SHAPE_HEIGHT_FIELD)
        return abs_(y[0]) <= 0.5 * (s.size[0] - 1.0) * s.size[2] + space
            && abs_(y[1]) <= 0.5 * (s.size[1] - 1.0) * s.size[3] + space && y[2] <= seam_height(s, y) + space;
    for (int f = 0; f < s.num_faces; ++f) {
        double d[3];
        subtract3(y, s.points + 3 * s.face_vertex[s.face_first[f]], d);
        if (!(dot3(d, s.face_normal + 3 * f) <= space)) return false;
    }
    return true;
}
// Plane through y perpendicular to n.
struct SeamPlane {
    double y[3], n[3], space;
};
// Return whether the point q is beyond the plane by more than the tolerances.
GPUSIM_FN bool seam_is_above(const SeamPlane& p, const double* q) {
    double d[3];
    subtract3(q, p.y, d);
    return dot3(d, p.n) > SEAM_LEAN * norm3(d) + p.space;
}
// Return whether the height field extends beyond the plane near the point.
GPUSIM_SHARED bool seam_field_rises(const Shape& s, const SeamPlane& p) {
    SeamCell c;
    seam_cell(s, p.y, c);
    const double slack[2] = {p.space / s.size[2], p.space / s.size[3]}, min_weight = -max_(slack[0], slack[1]);
    const int first_column = int(clamped(c.at[0] - slack[0], 0.0, c.columns - 2.0));
    const int last_column = int(clamped(c.at[0] + slack[0], 0.0, c.columns - 2.0));
    const int first_row = int(clamped(c.at[1] - slack[1], 0.0, c.rows - 2.0));
    const int last_row = int(clamped(c.at[1] + slack[1], 0.0, c.rows - 2.0));
    for (int row = first_row; row <= last_row; ++row)
        for (int column = first_column; column <= last_column; ++column) {
            const double u = c.at[0] - column, v = c.at[1] - row;
            for (int half = 0; half < 2; ++half) {
                const double x = half ? v : u, z = half ? u : v;
                if (!(1.0 - x >= min_weight && x - z >= min_weight && z >= min_weight)) continue;
                for (int k = 0; k < 3; ++k) {
                    const int i = column + (k == 1 ? 1 - half : (k == 2 ? 1 : 0));
                    const int j = row + (k == 1 ? half : (k == 2 ? 1 : 0));
                    const double q[3] = {(i - 0.5 * (c.columns - 1)) * s.size[2], (j - 0.5 * (c.rows - 1)) * s.size[3],
                                         s.points[j * c.columns + i]};
                    if (seam_is_above(p, q)) return true;
                }
            }
        }
    return false;
}
// Return whether a tile extends beyond the plane through x with the normal n. For a height field, only the surface near
// x counts.
GPUSIM_SHARED bool seam_rises(const World& w, int tile, const double* x, const double* normal, double space) {
    SeamPlane p;
    Shape s;
    to_tile_frame(w, tile, x, p.y);
    rotate_back3(w.shape_frame() + 9 * tile, normal, p.n);
    p.space = space;
    describe_shape(w, tile, s);
    if (s.kind == SHAPE_PLANE) return p.n[2] < 0.0 || sqrt_(p.n[0] * p.n[0] + p.n[1] * p.n[1]) > SEAM_LEAN;
    if (s.kind == SHAPE_HEIGHT_FIELD) return seam_field_rises(s, p);
    if (s.kind == SHAPE_BOX) {
        for (int k = 0; k < 8; ++k) {
            const double q[3] = {k & 1 ? s.size[0] : -s.size[0], k & 2 ? s.size[1] : -s.size[1],
                                 k & 4 ? s.size[2] : -s.size[2]};
            if (seam_is_above(p, q)) return true;
        }
        return false;
    }
    for (int k = 0; k < s.num_points; ++k)
        if (seam_is_above(p, s.points + 3 * k)) return true;
    return false;
}
GPUSIM_FN double seam_space(const World& w, int a, int b) { return min_(w.seam_reach()[a], w.seam_reach()[b]); }
// Return whether a point is in a neighbor of a tile.
GPUSIM_FN bool seam_in_neighbor(const World& w, int tile, const double* x) {
    for (int i = w.seam_start()[tile]; i < w.seam_start()[tile + 1]; ++i)
        if (seam_contains(w, w.seam()[i], x, seam_space(w, tile, w.seam()[i]))) return true;
    return false;
}
// Compute direction k of eight directions perpendicular to a normal, in the body's frame.
GPUSIM_FN void seam_direction(const World& w, int tile, const double* normal, int k, double* out) {
    double n[3], e[3], f[3];
    rotate_back3(w.shape_frame() + 9 * tile, normal, n);
    int axis = abs_(n[1]) < abs_(n[0]) ? 1 : 0;
    if (abs_(n[2]) < abs_(n[axis])) axis = 2;
    const double along[3] = {axis == 0 ? 1.0 : 0.0, axis == 1 ? 1.0 : 0.0, axis == 2 ? 1.0 : 0.0};
    cross3(n, along, e);
    const double length = norm3(e);
    for (int j = 0; j < 3; ++j) e[j] = e[j] / length;
    cross3(e, n, f);
    const double diagonal = 0.70710678118654757, part = k % 2 ? diagonal : 1.0;
    const double p = k % 4 == 2 ? 0.0 : (k < 2 || k == 7 ? part : -part), q = k % 4 == 0 ? 0.0 : (k < 4 ? part : -part);
    for (int j = 0; j < 3; ++j) out[j] = p * e[j] + q * f[j];
    rotate3(w.shape_frame() + 9 * tile, out, out);
}
GPUSIM_FN double seam_probe_distance(const World& w, int tile) { return SEAM_LOOK * w.seam_reach()[tile]; }
// Return whether a point of the tile near x is in no neighbor. The points are in the plane perpendicular to n.
GPUSIM_FN bool seam_is_uncovered(const World& w, int tile, const double* x, const double* n) {
    const double probe = seam_probe_distance(w, tile);
    for (int k = 0; k < 8; ++k) {
        double point[3];
        seam_direction(w, tile, n, k, point);
        for (int j = 0; j < 3; ++j) point[j] = x[j] + probe * point[j];
        if (seam_contains(w, tile, point, SEAM_FACE * probe) && !seam_in_neighbor(w, tile, point)) return true;
    }
    return false;
}
// Return whether neighbors of a tile cover its point x with the outward normal n.
GPUSIM_SHARED bool seam_covers(const World& w, int tile, const double* x, const double* n) {
    for (int i = w.seam_start()[tile]; i < w.seam_start()[tile + 1]; ++i) {
        const int other = w.seam()[i];
        const double space = seam_space(w, tile, other);
        if (seam_contains(w, other, x, space) && seam_rises(w, other, x, n, space)) return !seam_is_uncovered(w, tile, x, n);
    }
    return false;
}
// Compute the outward normal of the shape on one side, in the frame of its body.
GPUSIM_FN void seam_normal(const World& w, int m, int side, double* n) {
    rotate_back3(w.rotation() + 9 * w.shape_body()[w.pair_shapes()[2 * m + side]], w.pair_normal() + 3 * m, n);
    for (int k = 0; k < 3 && side == 1; ++k) n[k] = -n[k];
}
GPUSIM_FN const double* seam_point(const World& w, int m, int side, int k) {
    return w.contact_anchor() + 6 * (4 * m + k) + 3 * side;
}
GPUSIM_FN void seam_slope(const Shape& s, const double* y, double* n) {
    SeamCell c;
    seam_cell(s, y, c);
    const double *low = s.points + c.row * c.columns + c.column, *up = low + c.columns, *along = c.v > c.u ? up : low;
    const int side = c.v > c.u ? 0 : 1;
    n[0] = (along[0] - along[1]) / s.size[2];
    n[1] = (low[side] - up[side]) / s.size[3];
    n[2] = 1.0;
    const double length = norm3(n);
    for (int k = 0; k < 3; ++k) n[k] = n[k] / length;
}
struct SeamPoints {
    int count;
    double x[12], n[3];
};
GPUSIM_FN int seam_highest(const SeamPoints& p, const double* n) {
    int best = 0;
    for (int k = 1; k < p.count; ++k)
        if (dot3(p.x + 3 * k, n) > dot3(p.x + 3 * best, n)) best = k;
    return best;
}
// Compute the face normal of the tile that is nearest to the normal of the points.
GPUSIM_SHARED void seam_face(const World& w, int tile, const SeamPoints& p, double* out) {
    Shape s;
    describe_shape(w, tile, s);
    double n[3] = {0.0, 0.0, 1.0}, local[3];
    rotate_back3(w.shape_frame() + 9 * tile, p.n, local);
    if (s.kind == SHAPE_HEIGHT_FIELD) {
        to_tile_frame(w, tile, p.x + 3 * seam_highest(p, p.n), local);
        seam_slope(s, local, n);
    } else if (s.kind == SHAPE_BOX) {
        int best = abs_(local[1]) > abs_(local[0]) ? 1 : 0;
        if (abs_(local[2]) > abs_(local[best])) best = 2;
        for (int k = 0; k < 3; ++k) n[k] = k != best ? 0.0 : (local[k] < 0.0 ? -1.0 : 1.0);
    } else if (s.kind == SHAPE_HULL) {
        int best = 0;
        for (int f = 1; f < s.num_faces; ++f)
            if (dot3(s.face_normal + 3 * f, local) > dot3(s.face_normal + 3 * best, local)) best = f;
        for (int k = 0; k < 3; ++k) n[k] = s.face_normal[3 * best + k];
    }
    rotate3(w.shape_frame() + 9 * tile, n, out);
}
// Return the result of the seam check for points of a tile. The check uses a steeper normal, because the tolerance
// SEAM_FACE hides small angles.
GPUSIM_SHARED int seam_verdict(const World& w, int tile, const SeamPoints& p) {
    double n[3], tilt[3];
    seam_face(w, tile, p, n);
    subtract3(p.n, n, tilt);
    const double sine = norm3(tilt);
    const bool tilted = sine > SEAM_LEAN && dot3(p.n, n) >= SEAM_CONE;
    for (int k = 0; k < 3; ++k) n[k] = tilted ? n[k] + SEAM_STEEP / sine * tilt[k] : p.n[k];
    const double level = dot3(p.x + 3 * seam_highest(p, n), n) - SEAM_LEAN * w.seam_reach()[tile];
    const bool may_be_lower = tilted || w.shape_kind()[tile] == SHAPE_HEIGHT_FIELD;
    bool uncovered = false;
    for (int k = 0; k < p.count; ++k) {
        if (seam_covers(w, tile, p.x + 3 * k, n)) continue;
        if (!(may_be_lower && dot3(p.x + 3 * k, n) < level)) return SEAM_KEPT;
        uncovered = true;
    }
    return tilted && uncovered ? SEAM_CORRECTED : SEAM_DROPPED;
}
GPUSIM_FN void seam_points(const World& w, int m, int side, SeamPoints& out) {
    out.count = w.pair_points()[m];
    for (int k = 0; k < out.count; ++k)
        for (int j = 0; j < 3; ++j) out.x[3 * k + j] = seam_point(w, m, side, k)[j];
    seam_normal(w, m, side, out.n);
}
GPUSIM_FN int seam_pair_verdict(const World& w, int m, int side) {
    SeamPoints p;
    seam_points(w, m, side, p);
    return seam_verdict(w, w.pair_shapes()[2 * m + side], p);
}
// Replace a world normal by the normal of the tile's face.
GPUSIM_FN void seam_face_normal(const World& w, int tile, int side, const SeamPoints& p, double* normal) {
    seam_face(w, tile, p, normal);
    rotate3(w.rotation() + 9 * w.shape_body()[tile], normal, normal);
    for (int k = 0; k < 3 && side == 1; ++k) normal[k] = -normal[k];
}
// Return whether neighbors cover all points of a new manifold. If not, correct a normal that is not the face normal.
GPUSIM_SHARED bool seam_covers_manifold(const World& w, int a, int b, Manifold& found) {
    for (int side = 0; side < 2; ++side) {
        const int tile = side ? b : a;
        if (w.seam_start()[tile] == w.seam_start()[tile + 1]) continue;
        SeamPoints p;
        p.count = found.count;
        rotate_back3(w.rotation() + 9 * w.shape_body()[tile], found.normal, p.n);
        for (int k = 0; k < 3 && side == 1; ++k) p.n[k] = -p.n[k];
        for (int k = 0; k < found.count; ++k) set_anchor(w, tile, (side ? found.b : found.a) + 3 * k, p.x + 3 * k);
        const int verdict = seam_verdict(w, tile, p);
        if (verdict == SEAM_DROPPED) return true;
        if (verdict == SEAM_CORRECTED) seam_face_normal(w, tile, side, p, found.normal);
    }
    return false;
}
// Return the first entry of the pair of a neighbor and the other shape, or -1.
GPUSIM_FN int seam_pair(const World& w, int neighbor, int other) {
    const int k = find_pair(w.pair_shapes(), *w.pair_count(), min_(neighbor, other), max_(neighbor, other));
    return k < 0 ? k : k - slots_before(w.pair_shapes(), k);
}
// Return bits that mark the common points of pair m and pair k of a neighbor, if the pairs have a soft law.
GPUSIM_FN int seam_shared(const World& w, int m, int side, int k, int at) {
    if (!(pair_law(w, m)[0] > 0.0) || pair_law(w, m) != pair_law(w, k)) return 0;
    double n[3], o[3];
    seam_normal(w, m, side, n);
    seam_normal(w, k, at, o);
    if (dot3(n, o) < SEAM_CONE) return 0;
    const int tile = w.pair_shapes()[2 * m + side], neighbor = w.pair_shapes()[2 * k + at];
    const double space = seam_space(w, tile, neighbor);
    bool outside = false, all = true;
    int bits = 0;
    for (int i = 0; i < w.pair_points()[k]; ++i)
        outside = outside || !seam_contains(w, tile, seam_point(w, k, at, i), space);
    for (int i = 0; i < w.pair_points()[m]; ++i) {
        if (seam_contains(w, neighbor, seam_point(w, m, side, i), space)) bits |= 1 << i;
        else all = false;
    }
    if (!bits || !(outside || (all && k < m))) return 0;
    return seam_pair_verdict(w, k, at) == SEAM_DROPPED ? 0 : bits;
}
// Return whether the shape on one side rises above the contact plane of pair k by more than 45 degrees.
GPUSIM_FN bool seam_rises_steeply(const World& w, int m, int side, int k, int at) {
    const double *x = seam_point(w, m, side, 0), diagonal = 0.70710678118654757;
    const int tile = w.pair_shapes()[2 * m + side];
    const double probe = seam_probe_distance(w, tile);
    double n[3], d[3];
    seam_normal(w, k, at, n);
    subtract3(seam_point(w, k, at, 0), x, d);
    const double height = max_(dot3(d, n), 0.0) + diagonal * probe;
    for (int i = 0; i < 8; ++i) {
        seam_direction(w, tile, n, i, d);
        for (int j = 0; j < 3; ++j) d[j] = x[j] + (height * n[j] + diagonal * probe * d[j]);
        if (seam_contains(w, tile, d, SEAM_FACE * probe)) return true;
    }
    return false;
}
// Return bits that mark the points to remove and the normal to replace, due to neighbors of the shape on one side.
GPUSIM_FN int seam_changes(const World& w, int m, int side) {
    const int *pair = w.pair_shapes() + 2 * m, tile = pair[side], other = pair[1 - side];
    int bits = 0, verdict = -1;
    for (int i = w.seam_start()[tile]; i < w.seam_start()[tile + 1]; ++i) {
        const int neighbor = w.seam()[i], first = seam_pair(w, neighbor, other), at = neighbor < other ? 0 : 1;
        const int end = first < 0 ? first : first + slots_from(w.pair_shapes(), first, *w.pair_count());
        for (int k = first; k < end; ++k) {
            if (!(w.pair_points()[k] > 0)) continue;
            if (verdict < 0) verdict = seam_pair_verdict(w, m, side);
            if (verdict != SEAM_DROPPED) bits |= verdict << side | seam_shared(w, m, side, k, at);
            else if ((k < m || seam_pair_verdict(w, k, at) != SEAM_DROPPED)
                     && !seam_rises_steeply(w, m, side, k, at)) return 15;
        }
    }
    return bits;
}
// Item: a pair entry. judge_seam only reads manifolds. The phase drop_seam changes manifolds.
GPUSIM_PHASE void judge_seam(const World& w, int m) {
    int bits = 0;
    if (m < *w.pair_count() && w.pair_points()[m] > 0)
        for (int side = 0; side < 2; ++side) bits |= seam_changes(w, m, side);
    w.pair_seam()[m] = bits;
}
// Return whether an entry of the last step has points. If a pair has several entries, the normal must match entry m.
GPUSIM_FN bool seam_continues(const World& w, int m, int old) {
    if (!(w.before_pair_points()[old] > 0)) return false;
    if (pair_slots(w, w.before_pair_shapes()[2 * old], w.before_pair_shapes()[2 * old + 1]) == 1) return true;
    const double* before = w.before_pair_normal() + 3 * old;
    return !(abs_(dot3(before, w.pair_normal() + 3 * m)) < SEAM_CONE);
}
// Transfer the bristles and impulses of a tire that has moved from another tile.
GPUSIM_FN void transfer_tire(const World& w, int m) {
    const int *pair = w.pair_shapes() + 2 * m, count = w.before_count();
    const int same_pair = pair_before(w, m, pair[0], pair[1]);
    if (same_pair >= 0) {
        const int number = slots_before(w.pair_shapes(), m);
        const bool had = number < slots_from(w.before_pair_shapes(), same_pair, count);
        if (had && w.before_pair_points()[same_pair + number] > 0) return;
    }
    for (int side = 0; side < 2; ++side) {
        const int tile = pair[side], other = pair[1 - side];
        for (int i = w.seam_start()[tile]; i < w.seam_start()[tile + 1]; ++i) {
            const int n = w.seam()[i], first = pair_before(w, m, min_(n, other), max_(n, other));
            const int end = first < 0 ? first : first + slots_from(w.before_pair_shapes(), first, count);
            for (int old = first; old < end; ++old) {
                if (!seam_continues(w, m, old)) continue;
                copy_numbers(w.before_contact_impulse() + 12 * old, w.contact_impulse() + 12 * m, 3);
                copy_numbers(w.before_contact_slip() + 12 * old, w.contact_slip() + 12 * m, 3);
                copy_numbers(w.before_pair_torque() + 3 * old, w.pair_torque() + 3 * m, 3);
                return;
            }
        }
    }
}
// Item: a pair entry.
GPUSIM_PHASE void drop_seam(const World& w, int m) {
    if (m >= *w.pair_count() || !w.pair_points()[m]) return;
    const int bits = w.pair_seam()[m], count = w.pair_points()[m];
    for (int side = 0; side < 2; ++side) {
        if (!(bits & SEAM_CORRECTED << side)) continue;
        SeamPoints p;
        seam_points(w, m, side, p);
        double n[3];
        seam_face_normal(w, w.pair_shapes()[2 * m + side], side, p, n);
        for (int k = 0; k < 3; ++k) {
            w.pair_bend()[3 * m + k] += real(n[k] - w.pair_normal()[3 * m + k]);
            w.pair_normal()[3 * m + k] = n[k];
        }
    }
    int remaining = 0;
    for (int k = 0; k < count && bits; ++k) {
        if (bits >> k & 1) continue;
        const int to = 4 * m + remaining++, from = 4 * m + k;
        if (to == from) continue;
        w.contact_feature()[to] = w.contact_feature()[from];
        w.contact_age()[to] = w.contact_age()[from];
        copy_numbers(w.contact_anchor() + 6 * from, w.contact_anchor() + 6 * to, 6);
        copy_numbers(w.contact_impulse() + 3 * from, w.contact_impulse() + 3 * to, 3);
        copy_numbers(w.contact_slip() + 3 * from, w.contact_slip() + 3 * to, 3);
        copy_numbers(w.contact_arm() + 6 * from, w.contact_arm() + 6 * to, 6);
    }
    if (bits) end_points(w, m, remaining);
    if (w.pair_points()[m] && is_tire(pair_law(w, m))) transfer_tire(w, m);
}
