// Contact points on rolling surfaces, recomputed in every substep (gpusim/reference/contacts/contact_follow.py).
#pragma once
#include "contact_record.cuh"
#include "narrow_phase.cuh"
#include "seams.cuh"

GPUSIM_FN bool follows(const World& w) { return GPUSIM_SHAPES && w.rolling_shapes() && *w.substep() > 0; }
GPUSIM_PHASE void follow_shape(const World& w, int i) {
    if (follows(w)) pose_shape(w, i);
}
// Transform the components of a vector from the frame ``before`` to the rotated frame. In the world frame, the vector
// does not change.
GPUSIM_FN void rotate_frame(const real* before, const real* frame, real* part) {
    real world[3];
    for (int k = 0; k < 3; ++k) world[k] = before[k] * part[0] + before[3 + k] * part[1] + before[6 + k] * part[2];
    rotate3(frame, world, part);
}
GPUSIM_FN void rotate_numbers(const real* before, const real* frame, Lane numbers) {
    real part[3];
    take(numbers, 3, part);
    rotate_frame(before, frame, part);
    put(part, 3, numbers);
}
GPUSIM_FN void rotate_record(const World& w, int m, Lane r, const double* normal) {
    real before[9], frame[9], shear[3] = {real(0), r[AT_SHEAR], r[AT_SHEAR + 1]};
    take(r + AT_FRAME, 9, before);
    set_frame(w, m, r, normal, frame);
    for (int k = 0; k < w.pair_points()[m]; ++k) {
        rotate_numbers(before, frame, point_record(r, k) + AT_IMPULSE);
        if (!(r[AT_LAW] == real(LAW_TIRE))) rotate_numbers(before, frame, point_record(r, k) + AT_SLIP);
    }
    rotate_numbers(before, frame, r + AT_TORQUE);
    for (int j = 0; j < 3; ++j)
        if (!has_torque(r, pair_law(w, m), j)) r[AT_TORQUE + j] = real(0);
    rotate_frame(before, frame, shear);
    r[AT_SHEAR] = shear[1];
    r[AT_SHEAR + 1] = shear[2];
}
#if GPUSIM_SHAPES > 1
// Find the manifold with the normal nearest to the normal of entry m, for a pair with several entries. Return 0 if
// there is no manifold, or if its normal is not close to n and other entries have points.
GPUSIM_SHARED int collide_along(const World& w, int m, const Shape& a, const Shape& b, const double* n, Manifold& out) {
    const int first = m - slots_before(w.pair_shapes(), m);
    const int slots = slots_from(w.pair_shapes(), first, *w.pair_count());
    const double margin = w.shape_margin()[w.pair_shapes()[2 * m]] + w.shape_margin()[w.pair_shapes()[2 * m + 1]];
    Manifold found[MANIFOLDS];
    const int count = collide_field(a, b, margin, slots, found);
    int best = 0, used = 0;
    for (int i = 1; i < count; ++i)
        if (dot3(found[i].normal, n) > dot3(found[best].normal, n)) best = i;
    for (int j = 0; j < slots; ++j) used += w.pair_points()[first + j] > 0 ? 1 : 0;
    if (!count || (used > 1 && dot3(found[best].normal, n) < SEAM_CONE)) return 0;
    out = found[best];
    return out.count;
}
#endif
GPUSIM_FN int collide_again(const World& w, int m, const double* anchors, Manifold& found) {
    const int a = w.pair_shapes()[2 * m], b = w.pair_shapes()[2 * m + 1];
    Shape shape_a, shape_b;
    load_shape(w, a, shape_a);
    load_shape(w, b, shape_b);
#if GPUSIM_SHAPES > 1
    if (pair_slots(w, a, b) > 1) {
        const double normal[3] = {anchors[LANES * 24], anchors[LANES * 25], anchors[LANES * 26]};
        return collide_along(w, m, shape_a, shape_b, normal, found);
    }
#endif
#if GPUSIM_SHAPES
    return collide(shape_a, shape_b, w.shape_margin()[a] + w.shape_margin()[b], w.pair_guess() + 4 * m, found);
#else
    return 0;
#endif
}
GPUSIM_FN void follow_lane(const World& w, int slot) {
    Lane r = lane_at(w, slot);
    if (!is_filled(w, slot) || !(r[AT_ROLLS] + r[AT_ROLLS + 1] > real(0))) return;
    const int m = w.color_member()[slot], a = w.pair_shapes()[2 * m], b = w.pair_shapes()[2 * m + 1];
    double* anchors = w.record_anchor() + anchor_offset(slot);
    Manifold found;
    const int count = collide_again(w, m, anchors, found);
    // If the contact has ended, or the point has passed a seam, keep the old point until the end of the step.
    if (!count || (w.seam_pairs() && seam_covers_manifold(w, a, b, found))) return;
    for (int j = 0; j < 3; ++j) {
        r[AT_BEND + j] = real(found.normal[j] - anchors[LANES * (24 + j)]);
        anchors[LANES * (24 + j)] = found.normal[j];
    }
    rotate_record(w, m, r, found.normal);
    for (int k = 0; k < w.pair_points()[m]; ++k)
        for (int n = 0; n < count; ++n) {
            if (found.feature[n] != w.contact_feature()[4 * m + k]) continue;
            double anchor[6];
            set_anchor(w, a, found.a + 3 * n, anchor);
            set_anchor(w, b, found.b + 3 * n, anchor + 3);
            for (int j = 0; j < 6; ++j) anchors[LANES * (6 * k + j)] = anchor[j];
            break;
        }
}
// Item: records.
GPUSIM_PHASE void follow_pair(const World& w, int item) {
    if (!follows(w) || item >= record_items(w)) return;
    for (int l = 0; l < ITEM_LANES; ++l) follow_lane(w, item * ITEM_LANES + l);
}
