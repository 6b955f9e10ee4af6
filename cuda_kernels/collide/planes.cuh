// Half space against a convex shape. The contact points are the corners of the shape that face the half space.
#pragma once
#include "convex.cuh"

// Get the corners that may touch, relative to the center of the shape. Four corners of a cap are enough.
GPUSIM_SHARED int plane_candidates(const Shape& b, const double* back, double* polygon, int* ids) {
    const double zero[3] = {0.0, 0.0, 0.0};
    if (b.kind == SHAPE_BOX) {
        double d[3], axis[3] = {0.0, 0.0, 0.0};
        rotate_back3(b.rotation, back, d);
        const double x = abs_(d[0]), y = abs_(d[1]), z = abs_(d[2]);
        const int k = x >= y && x >= z ? 0 : (y >= z ? 1 : 2);
        axis[k] = d[k] < 0.0 ? -1.0 : 1.0;
        rotate3(b.rotation, axis, axis);
        return facing_from(b, axis, zero, polygon, ids);
    }
    const int count = facing_from(b, back, zero, polygon, ids);
    if (!has_rim(b) || count < 8) return count;
    for (int i = 1; i < 4; ++i) {
        copy3(polygon + 6 * i, polygon + 3 * i);
        ids[i] = ids[2 * i];
    }
    return 4;
}

GPUSIM_SHARED int plane_convex(const Shape& a, const Shape& b, double margin, Manifold& out) {
    const double n[3] = {a.rotation[2], a.rotation[5], a.rotation[8]}, back[3] = {-n[0], -n[1], -n[2]};
    const double radius = core_radius(b), extent = shape_extent(b);
    double shift[3], d[3], lowest[3];
    subtract3(b.center, a.center, shift);
    rotate_back3(b.rotation, back, d);
    const int vertex = core_support(b, d, lowest);
    rotate3(b.rotation, lowest, lowest);
    const double height = dot3(n, shift) - radius, min_gap = height + dot3(n, lowest);
    out.count = 0;
    copy3(n, out.normal);
    if (min_gap > margin) return 0;
    double polygon[3 * FACE_CORNERS], p[3 * (FACE_CORNERS + 1)], gap[FACE_CORNERS + 1];
    int corners[FACE_CORNERS], ids[FACE_CORNERS + 1], count = 0;
    const int all = plane_candidates(b, back, polygon, corners);
    double deepest = UNBOUNDED;
    for (int i = 0; i < all; ++i) {
        const double here = height + dot3(n, polygon + 3 * i);
        if (here > margin) continue;
        copy3(polygon + 3 * i, p + 3 * count);
        gap[count] = here;
        ids[count++] = corners[i];
        deepest = min_(deepest, here);
    }
    if (deepest > min_gap + (has_rim(b) ? EXACT_ROUND : EXACT) * extent) {
        copy3(lowest, p + 3 * count);
        gap[count] = min_gap;
        ids[count++] = vertex;
    }
    int chosen[4];
    out.count = choose_four(p, gap, count, n, chosen);
    int features[4];
    for (int i = 0; i < out.count; ++i) {
        const int from = chosen[i];
        features[i] = ids[from];
        for (int k = 0; k < 3; ++k) {
            out.b[3 * i + k] = b.center[k] + (p[3 * from + k] - radius * n[k]);
            out.a[3 * i + k] = out.b[3 * i + k] - gap[from] * n[k];
        }
    }
    set_features(features, out.count, out.feature);
    return out.count;
}
