// Contact points of any two shapes. Each pair of shape kinds has a routine.
#pragma once
#include "shape.cuh"

#if GPUSIM_LINKED == 1
GPUSIM_OUTER int collide(const Shape& a, const Shape& b, double margin, double* guess, Manifold& out);
#if GPUSIM_SHAPES > 1
GPUSIM_OUTER int collide_field(const Shape& a, const Shape& b, double margin, int max_manifolds, Manifold* out);
#endif
#else
#include "boxes.cuh"
#include "convex.cuh"
#include "planes.cuh"
#include "spheres.cuh"
// Routines that are only in builds for models with height fields, ellipsoids or superellipsoids.
#if GPUSIM_SHAPES > 1
#include "height_field.cuh"
#include "smooth.cuh"
#endif
#if GPUSIM_SHAPES > 2
#include "triangle_mesh.cuh"
#define GROUND_MANIFOLDS any_ground_manifolds
#else
#define GROUND_MANIFOLDS height_field_manifolds
#endif

// Return whether a shape may be concave. A concave shape must be the first shape of a pair.
GPUSIM_FN bool is_ground(const Shape& s) {
#if GPUSIM_SHAPES > 2
    if (s.kind == SHAPE_TRIANGLE_MESH) return true;
#endif
    return s.kind == SHAPE_HEIGHT_FIELD;
}

GPUSIM_FN bool is_smooth(const Shape& s) {
    return s.kind == SHAPE_SPHERE || s.kind == SHAPE_ELLIPSOID || s.kind == SHAPE_SUPERELLIPSOID;
}

// Select the routine of a pair. The first shape is concave, or has the lower kind number.
GPUSIM_FN int collide_ordered(const Shape& a, const Shape& b, double margin, double* guess, Manifold& out) {
#if GPUSIM_SHAPES > 1
    if (a.kind == SHAPE_HEIGHT_FIELD) return height_field_convex(a, b, margin, out);
#endif
#if GPUSIM_SHAPES > 2
    if (a.kind == SHAPE_TRIANGLE_MESH) return triangle_mesh_convex(a, b, margin, out);
#endif
    if (a.kind == SHAPE_PLANE) return plane_convex(a, b, margin, out);
    if (a.kind == SHAPE_BOX && b.kind == SHAPE_BOX) return box_box(a, b, margin, out);
    if (a.kind == SHAPE_CAPSULE && b.kind == SHAPE_CAPSULE) return capsule_capsule(a, b, margin, out);
    if (a.kind == SHAPE_SPHERE) {
        if (b.kind == SHAPE_SPHERE) return sphere_sphere(a, b, margin, out);
        if (b.kind == SHAPE_CAPSULE) return sphere_capsule(a, b, margin, out);
        if (b.kind == SHAPE_BOX) return sphere_box(a, b, margin, out);
        if (b.kind == SHAPE_CYLINDER) return sphere_cylinder(a, b, margin, out);
        if (b.kind == SHAPE_CONE) return sphere_cone(a, b, margin, out);
    }
#if GPUSIM_SHAPES > 1
    if (is_smooth(a) && is_smooth(b)) return smooth_smooth(a, b, margin, guess, out);
#endif
    return convex_convex(a, b, margin, guess, out);
}

// Swap A and B in a manifold.
GPUSIM_FN void swap_sides(Manifold& out) {
    if (!out.count) return;
    for (int k = 0; k < 3; ++k) out.normal[k] = -out.normal[k];
    for (int k = 0; k < 3 * out.count; ++k) {
        const double x = out.a[k];
        out.a[k] = out.b[k];
        out.b[k] = x;
    }
}

#if GPUSIM_LINKED && GPUSIM_GPU
GPUSIM_FN void copy_manifold(const Manifold& from, Manifold& to) {
    to.count = from.count;
    for (int k = 0; k < (from.count ? 3 : 0); ++k) to.normal[k] = from.normal[k];
    for (int k = 0; k < from.count; ++k) to.feature[k] = from.feature[k];
    for (int k = 0; k < 3 * from.count; ++k) {
        to.a[k] = from.a[k];
        to.b[k] = from.b[k];
    }
}
#endif

// Compute contact points with a gap of at most margin, and return their number. For a concave shape, compute only the
// deepest manifold. ``guess`` (4 numbers, initially zero) stores the normal for the next step, to speed up the search.
GPUSIM_OUTER int collide(const Shape& a, const Shape& b, double margin, double* guess, Manifold& out) {
    const bool swapped = is_ground(b) || (a.kind > b.kind && !is_ground(a));
#if GPUSIM_LINKED && GPUSIM_GPU
    // If another linked part passes the shapes, the compiler does not know their address space. Local copies have a
    // known address space.
    const Shape first = swapped ? b : a, second = swapped ? a : b;
    double local_guess[4] = {guess[0], guess[1], guess[2], guess[3]};
    Manifold found;
    collide_ordered(first, second, margin, local_guess, found);
    for (int k = 0; k < 4; ++k) guess[k] = local_guess[k];
    copy_manifold(found, out);
#else
    collide_ordered(swapped ? b : a, swapped ? a : b, margin, guess, out);
#endif
    if (swapped) swap_sides(out);
    return out.count;
}
#if GPUSIM_SHAPES > 1
// Compute up to `max_manifolds` manifolds of a concave and a convex shape, the deepest first. Return their number.
GPUSIM_OUTER int collide_field(const Shape& a, const Shape& b, double margin, int max_manifolds, Manifold* out) {
    const bool swapped = is_ground(b);
#if GPUSIM_LINKED && GPUSIM_GPU
    const Shape field = swapped ? b : a, body = swapped ? a : b;
    Manifold found[MANIFOLDS];
    const int count = GROUND_MANIFOLDS(field, body, margin, max_manifolds, found);
    for (int k = 0; k < count; ++k) copy_manifold(found[k], out[k]);
#else
    const int count = GROUND_MANIFOLDS(swapped ? b : a, swapped ? a : b, margin, max_manifolds, out);
#endif
    for (int k = 0; k < count && swapped; ++k) swap_sides(out[k]);
    return count;
}
#endif
#endif
