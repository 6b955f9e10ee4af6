// Contact points of two convex shapes. GJK and EPA give the normal and the gap (gjk.cuh, epa.cuh). The contact points
// are the corners of the overlap of both facing polygons (clip.cuh).
#pragma once
#include "clip.cuh"
#include "epa.cuh"

#define CLEARLY_APART 1e-5   // relative: above this gap, the vector between the nearest points gives an exact normal
#define TOUCHING 1e-9        // relative: below this gap, the vector between the nearest points has no useful direction
#define EPA_FLAT 1e-10       // relative accuracy of the penetration depth of polytopes
#define EPA_ROUND 1e-4       // relative accuracy of the penetration depth of other shapes, before polish_normal
#define POLISH_GAP 0.01      // relative: gap to which polish_normal moves the cores apart
#define POLISH_STEPS 6
#define SAME_NORMAL 1e-11    // square of the change of the normal (rad) below which polish_normal stops
#define PARALLEL_SINE 0.02   // segments with a smaller angle (1.1 degrees) touch along a line
#define EXACT 1e-9           // largest relative error of a gap from polygon points
#define EXACT_ROUND 1e-5     // largest relative error of a gap from points on a round rim with eight corners
#define FACE_BETTER 1e-4     // B's face is the reference face if its cosine to the normal is greater by this

// A pair with its normal, gap and nearest points, relative to A's center.
struct Approach {
    double offset[3];            // B's center
    double extent;               // length scale of tolerances
    double normal[3], gap;       // of the cores
    double on_a[3], on_b[3];     // nearest points of the cores, or deepest points
    double radius_a, radius_b;
};

GPUSIM_FN bool is_polytope(const Shape& s) { return s.kind == SHAPE_BOX || s.kind == SHAPE_HULL; }
GPUSIM_FN bool has_rim(const Shape& s) {
    return s.kind == SHAPE_CYLINDER || s.kind == SHAPE_CONE || s.kind == SHAPE_BARREL;
}

// Refine a normal: move the cores apart along the normal, and find their nearest points. Each step multiplies the error
// by (depth + gap) / (radius of curvature + gap).
GPUSIM_SHARED void polish_normal(const Shape& a, const Shape& b, Approach& c) {
    const double space = POLISH_GAP * c.extent;
    double best[3], depth = UNBOUNDED;
    copy3(c.normal, best);
    for (int step = 0; step < POLISH_STEPS; ++step) {
        const double now = depth_along(a, b, c.offset, c.normal), shift = now + space;
        if (!(now < depth)) break;
        depth = now;
        copy3(c.normal, best);
        double moved[3], v[3], on_b[3];
        for (int k = 0; k < 3; ++k) {
            moved[k] = c.offset[k] + shift * c.normal[k];
            v[k] = -c.normal[k];
        }
        Simplex s;
        if (gjk(a, b, moved, UNBOUNDED, TOUCHING * c.extent, v, s) != GJK_APART) break;
        nearest_points(s, v, c.on_a, on_b);
        for (int k = 0; k < 3; ++k) c.on_b[k] = on_b[k] - shift * c.normal[k];
        const double length = norm3(v);
        double change = 0.0;
        for (int k = 0; k < 3; ++k) {
            const double component = -v[k] / length;
            change += (component - c.normal[k]) * (component - c.normal[k]);
            c.normal[k] = component;
        }
        if (change < SAME_NORMAL) break;
    }
    if (depth_along(a, b, c.offset, c.normal) > depth) copy3(best, c.normal);
}

// Compute normal, gap and nearest points of the cores. Return false if the gap exceeds the margin. The input
// ``direction`` is a guess of the normal. The output is the normal, or a separating direction.
GPUSIM_SHARED bool approach(const Shape& a, const Shape& b, double margin, double* direction, Approach& c) {
    for (int k = 0; k < 3; ++k) c.offset[k] = b.center[k] - a.center[k];
    c.extent = shape_extent(a) + shape_extent(b);
    c.radius_a = core_radius(a);
    c.radius_b = core_radius(b);
    const double max_gap = margin + c.radius_a + c.radius_b;
    double v[3] = {-direction[0], -direction[1], -direction[2]};
    if (!(dot3(v, v) > 0.25)) {  // no guess
        for (int k = 0; k < 3; ++k) v[k] = -c.offset[k];
        if (!(dot3(v, v) > 0.0)) v[2] = -1.0;
    }
    Simplex s;
    const int status = gjk(a, b, c.offset, max_gap, TOUCHING * c.extent, v, s);
    const double distance = norm3(v);
    for (int k = 0; k < 3; ++k) c.normal[k] = direction[k] = -v[k] / distance;
    if (status == GJK_FAR) return false;
    nearest_points(s, v, c.on_a, c.on_b);
    if (status == GJK_OVERLAP || distance <= CLEARLY_APART * c.extent) {
        if (status == GJK_OVERLAP)
            epa(a, b, c.offset, c.extent, is_polytope(a) && is_polytope(b) ? EPA_FLAT : EPA_ROUND, s, c.normal);
        polish_normal(a, b, c);
    }
    c.gap = -depth_along(a, b, c.offset, c.normal);
    copy3(c.normal, direction);
    return c.gap <= max_gap;
}

// All candidates for contact points, with the gaps of the cores. The points are on the core of B (side = 1) or on the
// core of A (side = -1).
struct Candidates {
    int count;
    double p[3 * (LOOP_CORNERS + 1)], gap[LOOP_CORNERS + 1];
    int id[LOOP_CORNERS + 1];
};

// Add a contact point with a given midpoint between both surfaces, in the world frame.
GPUSIM_FN void set_point(const Shape& a, const Approach& c, const double* middle, double gap, Manifold& out) {
    const double to_a = -0.5 * gap + c.radius_a, to_b = 0.5 * gap - c.radius_b;
    for (int k = 0; k < 3; ++k) {
        out.a[3 * out.count + k] = a.center[k] + (middle[k] + to_a * c.normal[k]);
        out.b[3 * out.count + k] = a.center[k] + (middle[k] + to_b * c.normal[k]);
    }
    out.count += 1;
}

GPUSIM_FN void midpoint_of(const double* p, const double* q, double* out) {
    for (int k = 0; k < 3; ++k) out[k] = 0.5 * (p[k] + q[k]);
}

// Return whether the shape has a single facing corner that is the exact contact point. Corners on round rims are not
// exact.
GPUSIM_FN bool has_exact_corner(const Shape& s, int count) {
    return count == 1 && (is_polytope(s) || s.kind == SHAPE_SPHERE || s.kind == SHAPE_CAPSULE);
}

// Set one contact point. p and q are the facing corners of a and b, or null.
GPUSIM_SHARED void single_point(const Shape& a, const Approach& c, const double* p, const double* q, int id, Manifold& out) {
    double middle[3];
    midpoint_of(p ? p : c.on_a, q ? q : c.on_b, middle);
    if (p && !q)
        for (int k = 0; k < 3; ++k) middle[k] = p[k] + 0.5 * c.gap * c.normal[k];
    if (q && !p)
        for (int k = 0; k < 3; ++k) middle[k] = q[k] + -0.5 * c.gap * c.normal[k];
    out.count = 0;
    set_point(a, c, middle, c.gap, out);
    set_features(&id, 1, out.feature);
}

// Set the ends of the overlap of two nearly parallel segments. Return false if the segments cross, or do not overlap.
GPUSIM_SHARED bool segment_points(const Shape& a, const Approach& c, double margin, const double* p, const int* ids_p,
                                  const double* q, const int* ids_q, Manifold& out) {
    double e[3], f[3], n[3], g[3];
    subtract3(p + 3, p, e);
    subtract3(q + 3, q, f);
    cross3(e, f, n);
    const double ee = dot3(e, e), ff = dot3(f, f);
    if (dot3(n, n) > PARALLEL_SINE * PARALLEL_SINE * ee * ff) return false;
    subtract3(q, p, g);
    const double t0 = dot3(g, e) / ee, t1 = t0 + dot3(f, e) / ee;
    const bool opposite = t1 < t0;
    const double first = opposite ? t1 : t0, last = opposite ? t0 : t1;
    const double low = max_(0.0, first), high = min_(1.0, last);
    if (!((high - low) * sqrt_(ee) > CLIP_SLACK * c.extent)) return false;
    const int low_id = first > 0.0 ? 256 + ids_q[opposite ? 1 : 0] : ids_p[0];
    const int high_id = last < 1.0 ? 256 + ids_q[opposite ? 0 : 1] : ids_p[1];
    int ids[2];
    double min_gap = UNBOUNDED;
    out.count = 0;
    for (int i = 0; i < 2; ++i) {
        const double t = i == 0 ? low : high, s = clamped((t - t0) / (t1 - t0), 0.0, 1.0);
        double x[3], y[3], middle[3];
        for (int k = 0; k < 3; ++k) {
            x[k] = p[k] + t * e[k];
            y[k] = q[k] + s * f[k];
        }
        subtract3(y, x, g);
        const double gap = dot3(g, c.normal);
        min_gap = min_(min_gap, gap);
        if (gap - c.radius_a - c.radius_b > margin) continue;
        midpoint_of(x, y, middle);
        ids[out.count] = i == 0 ? low_id : high_id;
        set_point(a, c, middle, gap, out);
    }
    set_features(ids, out.count, out.feature);
    return out.count > 0 && min_gap <= c.gap + EXACT_ROUND * c.extent;  // otherwise the polygons do not overlap
}

// Clip the polygon q of one shape to the face p of the other shape, and compute the gap of each corner. n is the
// outward normal of p.
GPUSIM_SHARED void clip_candidates(const Approach& c, double max_gap, const double* p, const int* ids_p, int corners,
                                   const double* n, const double* q, const int* ids_q, int count, Candidates& out) {
    Loop loop, scratch;
    loop.count = 0;
    for (int i = 0; i < count; ++i) add_corner(loop, q + 3 * i, ids_q[i]);
    clip_by_polygon(p, ids_p, corners, n, CLIP_SLACK * c.extent, loop, scratch);
    double face[3];
    polygon_normal(p, corners, face);
    const double scale = 1.0 / dot3(face, n);
    out.count = 0;
    for (int i = 0; i < loop.count; ++i) {
        double g[3];
        subtract3(loop.p + 3 * i, p, g);
        const double gap = dot3(g, face) * scale;
        if (gap > max_gap) continue;
        copy3(loop.p + 3 * i, out.p + 3 * out.count);
        out.gap[out.count] = gap;
        out.id[out.count++] = loop.id[i];
    }
}

// Add the nearest points if they are outside the polygons, because a polygon only approximates a round rim.
GPUSIM_FN void add_nearest(const Shape& a, const Shape& b, const Approach& c, double side, Candidates& out) {
    double min_gap = UNBOUNDED;
    for (int i = 0; i < out.count; ++i) min_gap = min_(min_gap, out.gap[i]);
    if (min_gap <= c.gap + (has_rim(a) || has_rim(b) ? EXACT_ROUND : EXACT) * c.extent) return;
    double middle[3];
    midpoint_of(c.on_a, c.on_b, middle);
    for (int k = 0; k < 3; ++k) out.p[3 * out.count + k] = middle[k] + 0.5 * side * c.gap * c.normal[k];
    out.gap[out.count] = c.gap;
    out.id[out.count++] = 65535;
}

// Set the contact points of a face with a face or an edge.
GPUSIM_SHARED void face_points(const Shape& a, const Shape& b, const Approach& c, double margin, const double* p,
                               const int* ids_p, int count_p, const double* q, const int* ids_q, int count_q, Manifold& out) {
    const double max_gap = margin + c.radius_a + c.radius_b, back[3] = {-c.normal[0], -c.normal[1], -c.normal[2]};
    double face_a[3], face_b[3];
    polygon_normal(p, count_p, face_a);
    polygon_normal(q, count_q, face_b);
    // The reference face is the face whose normal is closer to the contact normal. If both normals are equally close,
    // use A's face.
    const bool on_b = count_p < 3
        || (count_q >= 3 && dot3(face_b, back) / norm3(face_b) > dot3(face_a, c.normal) / norm3(face_a) + FACE_BETTER);
    const double side = on_b ? -1.0 : 1.0;
    Candidates found;
    if (on_b) clip_candidates(c, max_gap, q, ids_q, count_q, back, p, ids_p, count_p, found);
    else clip_candidates(c, max_gap, p, ids_p, count_p, c.normal, q, ids_q, count_q, found);
    add_nearest(a, b, c, side, found);
    int chosen[4], ids[4];
    const int count = choose_four(found.p, found.gap, found.count, c.normal, chosen);
    out.count = 0;
    for (int i = 0; i < count; ++i) {
        const double* x = found.p + 3 * chosen[i];
        const double gap = found.gap[chosen[i]];
        double middle[3];
        for (int k = 0; k < 3; ++k) middle[k] = x[k] - 0.5 * side * gap * c.normal[k];
        ids[i] = found.id[chosen[i]];
        set_point(a, c, middle, gap, out);
    }
    set_features(ids, count, out.feature);
}

GPUSIM_SHARED void contact_points(const Shape& a, const Shape& b, const Approach& c, double margin, Manifold& out) {
    double p[3 * FACE_CORNERS], q[3 * FACE_CORNERS];
    int ids_p[FACE_CORNERS], ids_q[FACE_CORNERS];
    const double back[3] = {-c.normal[0], -c.normal[1], -c.normal[2]}, zero[3] = {0.0, 0.0, 0.0};
    const int count_p = facing_from(a, c.normal, zero, p, ids_p), count_q = facing_from(b, back, c.offset, q, ids_q);
    copy3(c.normal, out.normal);
    if (count_p >= 2 && count_q >= 2) {
        if (count_p > 2 || count_q > 2) {
            face_points(a, b, c, margin, p, ids_p, count_p, q, ids_q, count_q, out);
            return;
        }
        if (segment_points(a, c, margin, p, ids_p, q, ids_q, out)) return;
    }
    single_point(a, c, has_exact_corner(a, count_p) ? p : nullptr, has_exact_corner(b, count_q) ? q : nullptr,
                 mix_ids(ids_p[0], ids_q[0], count_p + 4 * count_q), out);
}

// Compute contact points of two convex shapes of the kinds 1 to 8, 10 and 11, and return out.count.
GPUSIM_SHARED int convex_convex(const Shape& a, const Shape& b, double margin, double* guess, Manifold& out) {
    Approach c;
    double direction[3];
    rotate3(a.rotation, guess, direction);
    const bool near = approach(a, b, margin, direction, c);
    rotate_back3(a.rotation, direction, guess);
    out.count = 0;
    copy3(direction, out.normal);
    if (near) contact_points(a, b, c, margin, out);
    return out.count;
}
