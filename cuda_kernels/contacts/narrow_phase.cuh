// Stage narrow_phase: find contact points of close pairs, and match them with points of the last step
// (gpusim/reference/contacts/narrow_phase.py).
#pragma once
#include "contact_tire.cuh"
#if GPUSIM_SHAPES
#include "../collide/collide.cuh"
#endif

// Return the index of the pair of shapes a < b in a sorted list, or -1.
template <class P> GPUSIM_FN int find_pair(P pairs, int count, int a, int b) {
    int low = 0, high = count - 1;
    while (low <= high) {
        const int middle = (low + high) / 2;
        const P pair = pairs + 2 * middle;
        if (pair[0] == a && pair[1] == b) return middle;
        if (pair[0] < a || (pair[0] == a && pair[1] < b)) low = middle + 1;
        else high = middle - 1;
    }
    return -1;
}
// Return whether entries m and n of a list belong to the same pair. A pair with several manifolds has several entries.
template <class P> GPUSIM_FN bool same_pair(P pairs, int m, int n) {
    return pairs[2 * m] == pairs[2 * n] && pairs[2 * m + 1] == pairs[2 * n + 1];
}
template <class P> GPUSIM_FN int slots_before(P pairs, int m) {
    int n = 0;
    while (n < m && same_pair(pairs, m, m - n - 1)) ++n;
    return n;
}
template <class P> GPUSIM_FN int slots_from(P pairs, int m, int count) {
    int n = 1;
    while (m + n < count && same_pair(pairs, m, m + n)) ++n;
    return n;
}
// Return the first entry of a pair in the list of the last step, or -1. The lists of both steps are sorted.
GPUSIM_FN int pair_before(const World& w, int m, int a, int b) {
    const int count = w.before_count();
    if (w.split_pairs()) {
        const int old = find_pair(w.before_pair_shapes(), count, a, b);
        return old < 0 ? old : old - slots_before(w.before_pair_shapes(), old);
    }
    if (m < count && w.before_pair_shapes()[2 * m] == a && w.before_pair_shapes()[2 * m + 1] == b) return m;
    return find_pair(w.before_pair_shapes(), count, a, b);
}
// Store a surface point relative to the center of mass: in body axes, or in world axes for rolling surfaces.
GPUSIM_FN void set_anchor(const World& w, int shape, const double* point, double* out) {
    const int b = w.shape_body()[shape];
    subtract3(point, w.position() + 3 * b, out);
    if (!w.shape_rolls()[shape]) rotate_back3(w.rotation() + 9 * b, out, out);
}
GPUSIM_FN void clear_point(const World& w, int at) {
    w.contact_age()[at] = 0;
    w.contact_mode()[at] = CONTACT_FLIGHT;
    clear_numbers(w.contact_impulse() + 3 * at, 3);
    clear_numbers(w.contact_slip() + 3 * at, 3);
    clear_numbers(w.contact_arm() + 6 * at, 6);
}
// Set the number of points of pair m, and clear unused data.
GPUSIM_FN void end_points(const World& w, int m, int count) {
    w.pair_points()[m] = count;
    for (int k = count; k < 4; ++k) {
        clear_point(w, 4 * m + k);
        w.contact_feature()[4 * m + k] = 0;
        clear_numbers(w.contact_anchor() + 6 * (4 * m + k), 6);
    }
    if (count) return;
    clear_numbers(w.pair_normal() + 3 * m, 3);
    clear_numbers(w.pair_force() + 3 * m, 3);
    clear_numbers(w.pair_torque() + 3 * m, 3);
}
// Return the square of the distance between point k and point j of the last step, on rolling surfaces.
GPUSIM_FN double rolling_distance_square(const World& w, int m, int k, int old, int j) {
    double square = 0.0;
    for (int side = 0; side < 2; ++side) {
        if (!w.shape_rolls()[w.pair_shapes()[2 * m + side]]) continue;
        const double* arm = w.contact_anchor() + 6 * (4 * m + k) + 3 * side;
        const stored* before = w.before_contact_arm() + 6 * (4 * old + j) + 3 * side;
        const double x = arm[0] - double(before[0]), y = arm[1] - double(before[1]), z = arm[2] - double(before[2]);
        square += x * x + y * y + z * z;
    }
    return square;
}
// Return the square of a rolling shape's radius, or 0 for other shapes.
GPUSIM_FN double rolling_radius_square(const World& w, int shape) {
    const double radius = w.shape_rolls()[shape] ? w.shape_size()[8 * shape] : 0.0;
    return radius * radius;
}
// Return the point of the last step that is nearest to point k. If another of the ``count`` points is nearer to the
// found point, return -1.
GPUSIM_FN int nearest_before(const World& w, int m, int k, int count, int old) {
    int best = -1;
    double best_square = 0.0;
    for (int j = 0; j < w.before_pair_points()[old]; ++j) {
        const double square = rolling_distance_square(w, m, k, old, j);
        if (best >= 0 && square >= best_square) continue;
        best = j;
        best_square = square;
    }
    for (int other = 0; best >= 0 && other < count; ++other) {
        const double square = rolling_distance_square(w, m, other, old, best);
        if (square < best_square || (square == best_square && other < k)) return -1;
    }
    return best;
}
GPUSIM_FN int same_feature_before(const World& w, int m, int k, int old) {
    for (int j = 0; j < w.before_pair_points()[old]; ++j)
        if (w.before_contact_feature()[4 * old + j] == w.contact_feature()[4 * m + k]) return j;
    return -1;
}
// Copy data of the matching point of the last step to point k of pair m.
GPUSIM_FN void match_point(const World& w, int m, int k, int count, int old) {
    const int at = 4 * m + k;
    clear_point(w, at);
    if (old < 0) return;
    const int *pair = w.pair_shapes() + 2 * m;
    const bool rolls = w.shape_rolls()[pair[0]] || w.shape_rolls()[pair[1]];
    const int j = rolls ? nearest_before(w, m, k, count, old) : same_feature_before(w, m, k, old), from = 4 * old + j;
    const bool same = j >= 0 && w.before_contact_feature()[from] == w.contact_feature()[at];
    // The distance of a matching point must be below the radius.
    if (same || (j >= 0 && rolling_distance_square(w, m, k, old, j)
                               <= rolling_radius_square(w, pair[0]) + rolling_radius_square(w, pair[1]))) {
        copy_numbers(w.before_contact_impulse() + 3 * from, w.contact_impulse() + 3 * at, 3);
        copy_numbers(w.before_contact_slip() + 3 * from, w.contact_slip() + 3 * at, 3);
        if (!same) return;
        w.contact_age()[at] = w.before_contact_age()[from];
        copy_numbers(w.before_contact_arm() + 6 * from, w.contact_arm() + 6 * at, 6);
        return;
    }
    // The bristles of a tire keep their deflection at the seams of a surface.
    if (w.before_pair_points()[old] > 0 && is_tire(pair_law(w, m)))
        copy_numbers(w.before_contact_slip() + 12 * old, w.contact_slip() + 3 * at, 3);
}
GPUSIM_FN void match_pair(const World& w, int m, int old, const double* normal) {
    const bool continued = old >= 0 && w.before_pair_points()[old] > 0;
    for (int k = 0; k < 3; ++k) {
        w.pair_bend()[3 * m + k] = continued ? real(normal[k] - w.before_pair_normal()[3 * old + k]) : real(0);
        w.pair_normal()[3 * m + k] = normal[k];
        w.pair_force()[3 * m + k] = continued ? w.before_pair_force()[3 * old + k] : stored(0);
        w.pair_torque()[3 * m + k] = continued ? w.before_pair_torque()[3 * old + k] : stored(0);
    }
}
// Write ``count`` points to entry m of a pair. ``old`` is the matching entry of the last step, or -1.
GPUSIM_FN void store_manifold(const World& w, int m, int old, int count, const Manifold& found) {
    const int a = w.pair_shapes()[2 * m], b = w.pair_shapes()[2 * m + 1];
    end_points(w, m, count);
    if (!count) return;
    for (int k = 0; k < count; ++k) {
        w.contact_feature()[4 * m + k] = found.feature[k];
        double* anchor = w.contact_anchor() + 6 * (4 * m + k);
        set_anchor(w, a, found.a + 3 * k, anchor);
        set_anchor(w, b, found.b + 3 * k, anchor + 3);
    }
    for (int k = 0; k < count; ++k) match_point(w, m, k, count, old);
    match_pair(w, m, old, found.normal);
}
#if GPUSIM_SHAPES > 1
// Assign ``count`` manifolds to the entries of a pair. The ``known`` entries existed in the last step, and get the
// manifolds with the nearest normals. Unused entries get -1.
GPUSIM_FN void assign_manifolds(const World& w, int old, int known, int count, const Manifold* found, int* assigned) {
    bool used[MANIFOLDS];
    for (int k = 0; k < MANIFOLDS; ++k) {
        used[k] = false;
        assigned[k] = -1;
    }
    for (int round = 0; round < count; ++round) {
        int best = -1, at = -1;
        double max_cosine = 0.0;
        for (int i = 0; i < count; ++i)
            for (int j = 0; j < known; ++j) {
                if (used[i] || assigned[j] >= 0 || !(w.before_pair_points()[old + j] > 0)) continue;
                const double* before = w.before_pair_normal() + 3 * (old + j);
                const double cosine = dot3(found[i].normal, before);
                if (best >= 0 && !(cosine > max_cosine)) continue;
                best = i;
                at = j;
                max_cosine = cosine;
            }
        if (best < 0) break;
        used[best] = true;
        assigned[at] = best;
    }
    for (int i = 0, j = 0; i < count; ++i) {
        if (used[i]) continue;
        while (assigned[j] >= 0) ++j;
        assigned[j] = i;
    }
}
// Find the manifolds of a pair whose entries start at m.
GPUSIM_SHARED void find_manifolds(const World& w, int m, int slots) {
    const int a = w.pair_shapes()[2 * m], b = w.pair_shapes()[2 * m + 1], old = pair_before(w, m, a, b);
    const int known = old < 0 ? 0 : min_(slots, slots_from(w.before_pair_shapes(), old, w.before_count()));
    Shape shape_a, shape_b;
    load_shape(w, a, shape_a);
    load_shape(w, b, shape_b);
    Manifold found[MANIFOLDS];
    int assigned[MANIFOLDS];
    const int count = collide_field(shape_a, shape_b, w.shape_margin()[a] + w.shape_margin()[b], slots, found);
    assign_manifolds(w, old, known, count, found, assigned);
    for (int j = 0; j < slots; ++j) {
        const Manifold& manifold = found[max_(assigned[j], 0)];
        clear_numbers(w.pair_guess() + 4 * (m + j), 4);
        store_manifold(w, m + j, j < known ? old + j : -1, assigned[j] < 0 ? 0 : manifold.count, manifold);
    }
}
#endif
// Item: an entry of a pair.
GPUSIM_PHASE void find_manifold(const World& w, int m) {
    if (m >= *w.pair_count()) {
        w.pair_points()[m] = 0;
        return;
    }
#if GPUSIM_SHAPES > 1
    if (w.split_pairs()) {
        if (slots_before(w.pair_shapes(), m)) return;
        const int slots = slots_from(w.pair_shapes(), m, *w.pair_count());
        if (slots > 1) return find_manifolds(w, m, slots);
    }
#endif
    const int a = w.pair_shapes()[2 * m], b = w.pair_shapes()[2 * m + 1], old = pair_before(w, m, a, b);
    Shape shape_a, shape_b;
    load_shape(w, a, shape_a);
    load_shape(w, b, shape_b);
    double* guess = w.pair_guess() + 4 * m;
    for (int k = 0; k < 4; ++k) guess[k] = old >= 0 ? w.before_pair_guess()[4 * old + k] : 0.0;
    Manifold found;
#if GPUSIM_SHAPES
    const int count = collide(shape_a, shape_b, w.shape_margin()[a] + w.shape_margin()[b], guess, found);
#else
    const int count = 0;
#endif
    store_manifold(w, m, old, count, found);
}
