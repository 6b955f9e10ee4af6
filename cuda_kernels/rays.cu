// Rays of sensors: find the first shape that a ray hits (gpusim/reference/signals/rays.py). This file has a separate
// build, so that the kernels of the step contain no rays. ray_shapes.cuh selects the file of a shape kind. gpusim
// generates ray_shapes.cuh.
#include "kinematics.cuh"
#include "contacts/shape_tables.cuh"
#include "ray_shapes.cuh"

#define RADIUS_FACTOR 1.000001  // tolerance of bounding spheres

// A ray in the world frame, and the shape that it hits, or -1.
struct Cast {
    double origin[3], direction[3], distance, normal[3];
    int shape;
};
GPUSIM_FN void start_cast(const StoredWorld& w, int ray, Cast& c) {
    const int site = w.ray_site()[ray];
    double axes[9], offset[3];
    site_axes(w, site, axes);
    site_position(w, site, c.origin);
    rotate3(axes, w.ray_origin() + 3 * ray, offset);
    rotate3(axes, w.ray_direction() + 3 * ray, c.direction);
    for (int k = 0; k < 3; ++k) {
        c.origin[k] += offset[k];
        c.normal[k] = 0.0;
    }
    c.distance = w.ray_range()[ray];
    c.shape = -1;
}
// Transform the ray to the frame of a shape. Return false if the ray cannot hit the shape before the current hit.
GPUSIM_FN bool enter_frame(const StoredWorld& w, int shape, const Cast& c, Shape& s, Ray& r) {
    const int body = w.shape_body()[shape];
    const double radius = w.shape_radius()[shape];
    double rotation[9], near[3];
    body_rotation(w, body, rotation);
    rotate3(rotation, w.shape_center() + 3 * shape, s.center);
    for (int k = 0; k < 3; ++k) {
        s.center[k] = w.position()[3 * body + k] + s.center[k];
        near[k] = c.origin[k] - s.center[k];
    }
    r.start = 0.0;
    if (radius < UNBOUNDED) {
        r.start = dot3(near, c.direction);
        for (int k = 0; k < 3; ++k) near[k] -= r.start * c.direction[k];
        const double max_distance = RADIUS_FACTOR * radius;
        if (dot3(near, near) > max_distance * max_distance || r.start > max_distance
            || c.distance < -r.start - max_distance) return false;
    }
    product33(rotation, w.shape_frame() + 9 * shape, s.rotation);
    rotate_back3(s.rotation, near, r.origin);
    rotate_back3(s.rotation, c.direction, r.direction);
    return true;
}
GPUSIM_FN void cast_at(const StoredWorld& w, int shape, Cast& c) {
    Shape s;
    Ray r;
    double normal[3];
    if (!enter_frame(w, shape, c, s, r)) return;
    describe_shape(w, shape, s);
    const double distance = ray_in_shape(s, r, normal) - r.start;
    if (!(distance < c.distance)) return;
    c.distance = max_(distance, 0.0);
    c.shape = shape;
    rotate3(s.rotation, normal, normal);
    const double length = norm3(normal);
    // If the normal is zero (a disk), use the reverse direction of the ray.
    for (int k = 0; k < 3; ++k) c.normal[k] = length > 0.0 ? normal[k] / length : -c.direction[k];
}
GPUSIM_FN void cast_ray(const StoredWorld& w, int ray, Cast& c) {
    start_cast(w, ray, c);
    const int sensor = w.ray_sensor()[ray];
    GPUSIM_ROLLED for (int n = w.ray_shape_start()[sensor]; n < w.ray_shape_start()[sensor + 1]; ++n)
        cast_at(w, w.ray_shape()[n], c);
}

// Read an entry (quantity, ray, column, number of columns), like observe_entry.
GPUSIM_FN void cast_entry(const StoredWorld& w, const int* entry, double* out) {
    Cast c;
    cast_ray(w, entry[1], c);
    report_cast(c, entry[0], out + entry[2]);
}
// Read entries of rays in all worlds, like observe_worlds. ``threads`` is the number of CPU threads.
GPUSIM_KERNEL void cast_rays(const Arguments* a, const int* entries, double* out, int count, int width, int threads) {
#if GPUSIM_GPU
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x, stride = (long long)gridDim.x * blockDim.x;
    for (long long item = first; item < (long long)a->n_worlds * count; item += stride) {
        const int world = world_of(item, count);
        cast_entry(StoredWorld(a, world), entries + 4 * (item - (long long)world * count), out + (long long)world * width);
    }
#else
#if defined(_OPENMP)
#pragma omp parallel for num_threads(threads) if (threads > 1 && a->n_worlds > 1)
#endif
    for (int world = 0; world < a->n_worlds; ++world) {
        BodyCache cache;
        StoredWorld w(a, world);
        w.cache = &cache;
        clear_cache(cache);
        for (int e = 0; e < count; ++e) cast_entry(w, entries + 4 * e, out + (long long)world * width);
    }
#endif
}
