// Clipping of polygons, and the choice of four contact points.
#pragma once
#include "support.cuh"

#define LOOP_CORNERS 32    // 16 corners cut by 16 edges. Each edge adds at most one corner
#define CLIP_SLACK 1e-7    // relative: a corner outside by less counts as inside, so that points do not alternate
#define CHOICE_SLACK 1e-6  // relative: among points that differ by less, the code chooses the first point

struct Loop {
    int count;
    double p[3 * LOOP_CORNERS];
    int id[LOOP_CORNERS];
};

// Return a feature number for a point, computed from three other numbers.
GPUSIM_FN int mix_ids(int i, int j, int k) { return 256 + (i * 911 + j * 2749 + k * 5039) % 65280; }

GPUSIM_FN void add_corner(Loop& loop, const double* p, int id) {
    if (loop.count == LOOP_CORNERS) return;
    copy3(p, loop.p + 3 * loop.count);
    loop.id[loop.count++] = id;
}

// Keep the part of a polygon or segment with outward . p <= level.
GPUSIM_SHARED void clip_by_plane(const Loop& in, const double* outward, double level, double slack, int id, Loop& out) {
    out.count = 0;
    if (in.count == 0) return;
    double here = dot3(outward, in.p) - level;
    const double first = here;
    for (int i = 0; i < in.count; ++i) {
        const int j = i + 1 < in.count ? i + 1 : 0;
        const double *p = in.p + 3 * i, *q = in.p + 3 * j;
        const double there = j == 0 ? first : dot3(outward, q) - level;
        if (here <= slack) add_corner(out, p, in.id[i]);
        const bool leaves = here < -slack && there > slack, enters = here > slack && there < -slack;
        if ((leaves || enters) && !(in.count == 2 && i == 1)) {
            const double t = here / (here - there);
            double x[3];
            for (int k = 0; k < 3; ++k) x[k] = p[k] + t * (q[k] - p[k]);
            add_corner(out, x, mix_ids(in.id[i], in.id[j], id));
        }
        here = there;
    }
}

// Clip a loop against the edges of a polygon with the outward unit normal n. ``scratch`` is a work array.
GPUSIM_SHARED void clip_by_polygon(const double* polygon, const int* ids, int corners, const double* n, double slack,
                                   Loop& loop, Loop& scratch) {
    for (int i = 0; i < corners; ++i) {
        const double *p = polygon + 3 * i, *q = polygon + 3 * (i + 1 < corners ? i + 1 : 0);
        double edge[3], outward[3];
        subtract3(q, p, edge);
        cross3(edge, n, outward);
        const double length = norm3(outward);
        if (!(length > 0.0)) continue;
        for (int k = 0; k < 3; ++k) outward[k] = outward[k] / length;
        clip_by_plane(loop, outward, dot3(outward, p), slack, ids[i], scratch);
        loop.count = scratch.count;
        for (int k = 0; k < scratch.count; ++k) {
            copy3(scratch.p + 3 * k, loop.p + 3 * k);
            loop.id[k] = scratch.id[k];
        }
    }
}

// Compute the normal of a polygon (not a unit vector).
GPUSIM_FN void polygon_normal(const double* polygon, int corners, double* n) {
    n[0] = n[1] = n[2] = 0.0;
    for (int i = 1; i + 1 < corners; ++i) {
        double e[3], f[3], m[3];
        subtract3(polygon + 3 * i, polygon, e);
        subtract3(polygon + 3 * i + 3, polygon, f);
        cross3(e, f, m);
        for (int k = 0; k < 3; ++k) n[k] += m[k];
    }
}

GPUSIM_FN double square_distance(const double* p, const double* q) {
    double d[3];
    subtract3(p, q, d);
    return dot3(d, d);
}

// Return the deepest point. If several points are equally deep, return the first point.
GPUSIM_FN int deepest_point(const double* gap, int count, double slack) {
    double min_gap = UNBOUNDED;
    for (int i = 0; i < count; ++i) min_gap = min_(min_gap, gap[i]);
    int best = 0;
    while (!(gap[best] <= min_gap + slack) && best + 1 < count) ++best;
    return best;
}

// Return the point that forms the largest triangle with p and q. ``sign`` selects the side of the line through p and q.
GPUSIM_FN int widest_point(const double* points, int count, const double* p, const double* q, const double* n, double sign,
                           double slack) {
    double max_area = slack;
    int best = -1;
    for (int i = 0; i < count; ++i) {
        double e[3], f[3], m[3];
        subtract3(q, p, e);
        subtract3(points + 3 * i, p, f);
        cross3(e, f, m);
        const double area = sign * dot3(m, n);
        if (area > max_area + slack || (best < 0 && area > max_area)) { max_area = area; best = i; }
    }
    return best;
}

// Choose at most four points. Point 1 is the deepest point, and point 2 is the point farthest from point 1. Points 3
// and 4 are the points farthest from the line through points 1 and 2, one on each side. Among equal points, choose the
// first point, so that the choice does not alternate.
GPUSIM_SHARED int choose_four(const double* points, const double* gap, int count, const double* n, int* chosen) {
    if (count <= 4) {
        for (int i = 0; i < count; ++i) chosen[i] = i;
        return count;
    }
    double extent = 0.0;
    for (int i = 1; i < count; ++i) extent = max_(extent, square_distance(points, points + 3 * i));
    const int deepest = deepest_point(gap, count, CHOICE_SLACK * sqrt_(extent));
    int farthest = deepest == 0 ? 1 : 0;
    for (int i = 0; i < count; ++i)
        if (square_distance(points + 3 * deepest, points + 3 * i)
            > square_distance(points + 3 * deepest, points + 3 * farthest) + CHOICE_SLACK * extent) farthest = i;
    chosen[0] = deepest;
    chosen[1] = farthest;
    int num_chosen = 2;
    for (int side = 0; side < 2; ++side) {
        const int i = widest_point(points, count, points + 3 * deepest, points + 3 * farthest, n, side == 0 ? 1.0 : -1.0,
                                   CHOICE_SLACK * extent);
        if (i >= 0) chosen[num_chosen++] = i;
    }
    return num_chosen;
}

// Set the feature numbers of the points. No two points of a manifold have the same number.
GPUSIM_FN void set_features(const int* ids, int count, int* feature) {
    for (int i = 0; i < count; ++i) {
        int id = ids[i] & 65535;
        for (int j = 0; j < i; ++j)
            if (feature[j] == id) { id = (id + 1) & 65535; j = -1; }
        feature[i] = id;
    }
}
