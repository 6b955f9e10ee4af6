// Polygons on a rectangle: clipping, and the choice of four points.
#pragma once
#include "../math/platform.cuh"

#define BOX_DEEPER 1e-6  // relative to the face: minimum advantage of the deepest point over a chosen point
#define BOX_POLYGON 8

// Outline of the incident face on the reference face: corners (x, y), and the index of the edge after each corner.
// Edges 0..3 belong to the incident face, and 4..7 to the reference face.
struct BoxPolygon {
    int n;
    double x[BOX_POLYGON], y[BOX_POLYGON];
    int edge[BOX_POLYGON];
};

// Clip to sign * coordinate <= limit.
GPUSIM_SHARED void box_clip(BoxPolygon& g, bool second, double sign, double limit, int side) {
    BoxPolygon o;
    o.n = 0;
    for (int i = 0; i < g.n; ++i) {
        const int j = i + 1 == g.n ? 0 : i + 1;
        const double di = limit - sign * (second ? g.y[i] : g.x[i]), dj = limit - sign * (second ? g.y[j] : g.x[j]);
        if (di >= 0.0 && o.n < BOX_POLYGON) {
            o.x[o.n] = g.x[i];
            o.y[o.n] = g.y[i];
            o.edge[o.n++] = g.edge[i];
        }
        if ((di >= 0.0) != (dj >= 0.0) && o.n < BOX_POLYGON) {
            const double f = di / (di - dj);
            o.x[o.n] = second ? g.x[i] + f * (g.x[j] - g.x[i]) : sign * limit;
            o.y[o.n] = second ? sign * limit : g.y[i] + f * (g.y[j] - g.y[i]);
            o.edge[o.n++] = di >= 0.0 ? side : g.edge[i];
        }
    }
    g = o;
}

// Choose four of n > 4 points that span a large area, including the deepest point. The choice uses positions, because
// gaps may be equal up to round-off.
GPUSIM_SHARED void box_spread(const BoxPolygon& g, const double* gap, int n, double size, int* pick) {
    const double tie = BOX_DEEPER * size;
    int p0 = 0, p1 = 0, p2 = 0, p3 = 0;
    double best = g.x[0] + 0.37 * g.y[0];
    for (int i = 1; i < n; ++i) {
        const double s = g.x[i] + 0.37 * g.y[i];
        if (s > best + tie) { best = s; p0 = i; }
    }
    best = -1.0;
    for (int i = 0; i < n; ++i) {
        const double x = g.x[i] - g.x[p0], y = g.y[i] - g.y[p0], s = x * x + y * y;
        if (s > best + tie * size) { best = s; p1 = i; }
    }
    best = -1.0;
    for (int i = 0; i < n; ++i) {
        const double s = abs_((g.x[p1] - g.x[p0]) * (g.y[i] - g.y[p0]) - (g.y[p1] - g.y[p0]) * (g.x[i] - g.x[p0]));
        if (s > best + tie * size) { best = s; p2 = i; }
    }
    const double twice_area = (g.x[p1] - g.x[p0]) * (g.y[p2] - g.y[p0]) - (g.y[p1] - g.y[p0]) * (g.x[p2] - g.x[p0]);
    const double sign = twice_area < 0.0 ? -1.0 : 1.0;
    best = -1.0;
    for (int i = 0; i < n; ++i) {
        if (i == p0 || i == p1 || i == p2) continue;
        // Point i enlarges the triangle by an area. Compute twice this area.
        const double s0 = sign * ((g.y[p1] - g.y[p0]) * (g.x[i] - g.x[p0]) - (g.x[p1] - g.x[p0]) * (g.y[i] - g.y[p0]));
        const double s1 = sign * ((g.y[p2] - g.y[p1]) * (g.x[i] - g.x[p1]) - (g.x[p2] - g.x[p1]) * (g.y[i] - g.y[p1]));
        const double s2 = sign * ((g.y[p0] - g.y[p2]) * (g.x[i] - g.x[p2]) - (g.x[p0] - g.x[p2]) * (g.y[i] - g.y[p2]));
        const double s = max_(s0, max_(s1, s2));
        if (s > best + tie * size) { best = s; p3 = i; }
    }
    pick[0] = p0; pick[1] = p1; pick[2] = p2; pick[3] = p3;
    int deepest = 0;
    for (int i = 1; i < n; ++i) deepest = gap[i] < gap[deepest] ? i : deepest;
    int nearest = 0;
    double min_gap = gap[p0], distance = 1e300;
    for (int k = 0; k < 4; ++k) {
        const double x = g.x[pick[k]] - g.x[deepest], y = g.y[pick[k]] - g.y[deepest];
        min_gap = min_(min_gap, gap[pick[k]]);
        if (x * x + y * y < distance) { distance = x * x + y * y; nearest = k; }
    }
    if (gap[deepest] < min_gap - tie) pick[nearest] = deepest;
    for (int k = 1; k < 4; ++k)
        for (int m = k; m > 0 && pick[m - 1] > pick[m]; --m) {
            const int swap = pick[m];
            pick[m] = pick[m - 1];
            pick[m - 1] = swap;
        }
}
