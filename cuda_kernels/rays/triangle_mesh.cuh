// Ray against a triangle mesh: search the tree, and test the triangles of the leaves from both sides (Moeller, Trumbore
// 1997; gpusim/shapes/mesh_casting.py).
#pragma once
#include "../collide/mesh_tables.cuh"
#include "ray.cuh"

#define MESH_RIM 1e-12  // barycentric tolerance at the rim, so that no ray passes between two triangles

// Return whether the ray hits the box of a node before ``best``. The code enlarges the box by one grid step.
GPUSIM_FN bool ray_hits_node(const Shape& s, const double* step, const Ray& r, const int* node, double best) {
    double enter = r.start, leave = best;
    for (int k = 0; k < 3; ++k) {
        const double low = s.size[k] + (mesh_box_side(node, k) - 1.0) * step[k] - r.origin[k];
        const double high = s.size[k] + (mesh_box_side(node, 3 + k) + 1.0) * step[k] - r.origin[k];
        if (r.direction[k] == 0.0) {
            if (low > 0.0 || high < 0.0) return false;
            continue;
        }
        const double a = low / r.direction[k], b = high / r.direction[k];
        enter = max_(enter, min_(a, b));
        leave = min_(leave, max_(a, b));
    }
    return enter <= leave;
}
// Return the s at which the ray crosses the triangle, or NO_HIT.
GPUSIM_FN double ray_triangle(const double* a, const double* b, const double* c, const Ray& r, double* normal) {
    double e[3], f[3], p[3], q[3], to[3];
    subtract3(b, a, e);
    subtract3(c, a, f);
    cross3(r.direction, f, p);
    const double volume = dot3(e, p);
    if (volume == 0.0) return NO_HIT;
    subtract3(r.origin, a, to);
    const double u = dot3(to, p) / volume;
    cross3(to, e, q);
    const double v = dot3(r.direction, q) / volume;
    if (!(u >= -MESH_RIM && v >= -MESH_RIM && u + v <= 1.0 + MESH_RIM)) return NO_HIT;
    cross3(e, f, normal);
    return dot3(f, q) / volume;
}
GPUSIM_SHARED double ray_triangle_mesh(const Shape& s, const Ray& r, double* normal) {
    MeshTables m;
    mesh_tables(s, m);
    const double step[3] = {mesh_step(s.size, 0), mesh_step(s.size, 1), mesh_step(s.size, 2)};
    double best = NO_HIT, n[3];
    for (int at = 0; at < m.num_nodes;) {
        const int *node = m.nodes + 4 * at, link = node[3];
        const bool hits_node = ray_hits_node(s, step, r, node, best);
        at = hits_node || link < 0 ? at + 1 : link;
        if (!hits_node || link >= 0) continue;
        for (int k = 0; k < MESH_LEAF; ++k) {
            const int number = MESH_LEAF * (-1 - link) + k;
            if (number >= m.num_solid) break;
            const int* v = m.corners + 3 * number;
            const double hit = ray_triangle(s.points + 3 * v[0], s.points + 3 * v[1], s.points + 3 * v[2], r, n);
            if (!(hit >= r.start && hit < best)) continue;
            best = hit;
            copy3(n, normal);
        }
    }
    return best;
}
