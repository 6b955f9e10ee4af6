// Positions of bodies and sites in the stored state, for signals (observe.cuh) and rays (rays.cu).
#pragma once
#include "kept.cuh"
#include "math/rotations.cuh"

// Number of bodies whose results a CPU thread caches, because a signal list often has several signals of a body.
#define CACHED_BODIES 32
struct BodyCache {
    int rotation_of[CACHED_BODIES], angular_velocity_of[CACHED_BODIES];
    double rotation[CACHED_BODIES][9], angular_velocity[CACHED_BODIES][3];
};
GPUSIM_FN void clear_cache(BodyCache& cache) {
    for (int k = 0; k < CACHED_BODIES; ++k) cache.rotation_of[k] = cache.angular_velocity_of[k] = -1;
}
GPUSIM_FN void body_rotation(const StoredWorld& w, int b, double* out) {
#if !GPUSIM_GPU
    if (w.cache) {
        double* cached = w.cache->rotation[b % CACHED_BODIES];
        int& whose = w.cache->rotation_of[b % CACHED_BODIES];
        if (whose != b) matrix_from_quaternion(w.orientation() + 4 * b, cached);
        whose = b;
        for (int k = 0; k < 9; ++k) out[k] = cached[k];
        return;
    }
#endif
    matrix_from_quaternion(w.orientation() + 4 * b, out);
}

GPUSIM_FN void rotate_from_body(const StoredWorld& w, int b, const double* vector, double* out) {
    double rotation[9];
    body_rotation(w, b, rotation);
    rotate3(rotation, vector, out);
}
GPUSIM_FN void site_position(const StoredWorld& w, int i, double* out) {
    const int b = w.site_body()[i];
    rotate_from_body(w, b, w.site_arm() + 3 * i, out);
    for (int k = 0; k < 3; ++k) out[k] = w.position()[3 * b + k] + out[k];
}
GPUSIM_FN void site_axes(const StoredWorld& w, int i, double* out) {
    double body[9], frame[9];
    body_rotation(w, w.site_body()[i], body);
    matrix_from_quaternion(w.site_frame() + 4 * i, frame);
    for (int j = 0; j < 3; ++j)
        for (int k = 0; k < 3; ++k)
            out[3 * j + k] = body[3 * j] * frame[k] + body[3 * j + 1] * frame[3 + k] + body[3 * j + 2] * frame[6 + k];
}
