// Records of manifolds. A record contains all data for the substeps of a step, in the frame (normal, tangent, tangent).
// Wrenches are about the center of the manifold. Records are in the order of the sweeps. The stage color_contacts fills
// the records from the state, and store_contacts copies impulses, slips and arms back.
#pragma once
#include "contact_coloring.cuh"
#include "contact_tire.cuh"
#include "../math/lanes.cuh"
#include "../joints/rows.cuh"

// Return the number of items of a phase over all records. The last record of a list may have unused lanes.
GPUSIM_FN int record_items(const World& w) { return w.color_first()[w.max_colors() + 2] / ITEM_LANES; }
GPUSIM_FN int list_items(const World& w, int list) { return (list_size(w, list) + ITEM_LANES - 1) / ITEM_LANES; }
GPUSIM_FN int list_slot(const World& w, int list, int i) { return w.color_first()[list] + i * ITEM_LANES; }

GPUSIM_FN int record_offset(int slot) { return (slot / LANES) * (RECORD_SIZE * LANES) + slot % LANES; }
GPUSIM_FN Lane lane_at(const World& w, int slot) { return {InSlab<real>::of(w.manifold() + record_offset(slot))}; }
GPUSIM_FN ReadLane read_lane(const World& w, int slot) {
    return {InSlab<const real>::of(w.manifold() + record_offset(slot))};
}
GPUSIM_FN Lane record(const World& w, int m) { return lane_at(w, w.record_index()[m]); }
GPUSIM_FN ReadLane read_record(const World& w, int m) { return read_lane(w, w.record_index()[m]); }
#if ITEM_LANES == 1
GPUSIM_FN Item item_at(const World& w, int slot) { return lane_at(w, slot); }
#else
GPUSIM_FN Item item_at(const World& w, int slot) {
    return reinterpret_cast<Wide*>(w.manifold()) + (slot / LANES) * RECORD_SIZE;
}
#endif
// Return the index of the points and the normal of a record in double precision.
GPUSIM_FN int anchor_offset(int slot) { return (slot / LANES) * (ANCHOR_SIZE * LANES) + slot % LANES; }
template <class R> GPUSIM_FN R point_record(R r, int k) { return r + (FIRST_POINT + POINT_SIZE * k); }
template <class R> GPUSIM_FN int max_points(R r) { return int(greatest_lane(r[AT_COUNT])); }
GPUSIM_FN bool is_filled(const World& w, int slot) { return w.color_member()[slot] >= 0; }
// Return whether an item has records. The used lanes of an item come first, so a test of lane 0 is enough.
GPUSIM_FN bool has_records(const World& w, int item) { return item < record_items(w) && is_filled(w, item * ITEM_LANES); }

// Get ``count`` numbers per body, for one side of each lane.
template <class T> GPUSIM_FN void gather(Lane r, int side, const T* from, int stride, int count, real* out) {
    const T* source = from + stride * int(r[AT_BODIES + side]);
    for (int k = 0; k < count; ++k) out[k] = real(source[k]);
}
#if ITEM_LANES > 1
template <class T> GPUSIM_FN void gather(Wide* r, int side, const T* from, int stride, int count, Wide* out) {
    int body[LANES];
    whole_numbers(r[AT_BODIES + side], body);
    for (int l = 0; l < LANES; ++l) {
        const T* source = from + stride * body[l];
        for (int k = 0; k < count; ++k) reinterpret_cast<real*>(out + k)[l] = real(source[k]);
    }
}
#endif

// Get the twists of the bodies on one side.
GPUSIM_FN void gather_twist(Lane r, int side, const real* velocity, real* out) { gather(r, side, velocity, 6, 6, out); }
#if ITEM_LANES > 1
GPUSIM_FN void gather_twist(Wide* r, int side, const real* velocity, Wide* out) {
    int body[LANES];
    whole_numbers(r[AT_BODIES + side], body);
    six_to_lanes(velocity, body, out);
}
#endif

// Compute tangents of a unit normal (Duff et al. 2017). The tangents jump if the z component changes its sign.
template <class T> GPUSIM_FN void tangents(const T* n, T* first, T* second) {
    const T sign = n[2] < T(0) ? T(-1) : T(1);
    const T a = T(-1) / (sign + n[2]), b = n[0] * n[1] * a;
    first[0] = T(1) + sign * n[0] * n[0] * a; first[1] = sign * b; first[2] = -sign * n[0];
    second[0] = b; second[1] = sign + n[1] * n[1] * a; second[2] = -n[1];
}
// Transform a world vector to the frame of the record.
GPUSIM_FN void to_frame(Lane r, const stored* vector, real* out) {
    const real world[3] = {real(vector[0]), real(vector[1]), real(vector[2])};
    for (int k = 0; k < 3; ++k)
        out[k] = r[AT_FRAME + 3 * k] * world[0] + r[AT_FRAME + 3 * k + 1] * world[1]
               + r[AT_FRAME + 3 * k + 2] * world[2];
}
// Transform a vector from the frame of the record to the world.
GPUSIM_FN void from_frame(ReadLane r, real normal, real first, real second, stored* out) {
    for (int k = 0; k < 3; ++k)
        out[k] = stored(r[AT_FRAME + k] * normal + r[AT_FRAME + 3 + k] * first + r[AT_FRAME + 6 + k] * second);
}
// Combine the friction of two surfaces by a rule (gpusim/contact/material.py).
GPUSIM_FN double combined_friction(int rule, double a, double b) {
    if (rule == COMBINE_MIN) return min_(a, b);
    if (rule == COMBINE_MAX) return max_(a, b);
    return rule == COMBINE_MULTIPLY ? a * b : sqrt_(a * b);
}
// Combine the lever arms (m) of rolling or spinning friction. If one surface has 0, the arm of the other surface
// applies.
GPUSIM_FN double combined_arm(int rule, double a, double b) {
    if (!(a > 0.0) || !(b > 0.0)) return max_(a, b);
    return combined_friction(rule == COMBINE_MULTIPLY ? COMBINE_MEAN : rule, a, b);
}
// Set friction coefficients and restitution of a pair.
GPUSIM_FN void pair_material(const World& w, int m, Lane r) {
    const int row = separate_material_row(w, m);
    int a = row >= 0 ? w.shapes() + row : w.pair_shapes()[2 * m], b = row >= 0 ? a : w.pair_shapes()[2 * m + 1];
    r[AT_RESTITUTION] = real(max_(w.shape_restitution()[a], w.shape_restitution()[b]));
    int rule = COMBINE_MAX;  // has no effect if a == b
    if (row < 0) {
        const int rule_a = w.shape_rule()[a], rule_b = w.shape_rule()[b], priority = (rule_a >> 2) - (rule_b >> 2);
        if (priority == 0) rule = max_(rule_a, rule_b) & 3;
        if (priority > 0) b = a;
        if (priority < 0) a = b;
    }
    r[AT_FRICTION] = real(combined_friction(rule, w.shape_friction()[a], w.shape_friction()[b]));
    r[AT_ROLLING] = real(combined_arm(rule, w.shape_rolling_friction()[a], w.shape_rolling_friction()[b]));
    r[AT_SPINNING] = real(combined_arm(rule, w.shape_spinning_friction()[a], w.shape_spinning_friction()[b]));
}
// Set the frame of a record from its normal: rows are the normal and the tangents.
GPUSIM_FN void set_frame(const World& w, int m, Lane r, const double* normal, real* frame) {
    for (int j = 0; j < 3; ++j) frame[j] = real(normal[j]);
    tangents(frame, frame + 3, frame + 6);
    if (r[AT_LAW] == real(LAW_TIRE)) tire_tangents(w, m, frame);
    put(frame, 9, r + AT_FRAME);
}
template <int N> GPUSIM_FN void put_anchor(const double* from, double* to) {
#if PAIRED && LANES == 1
    write_numbers<N>(from, to);
#else
    for (int k = 0; k < N; ++k) to[LANES * k] = from[k];
#endif
}
GPUSIM_FN void load_point(const World& w, int m, int k, Lane r, double* anchor) {
    const int at = 4 * m + k;
    Lane p = point_record(r, k);
    real part[3];
    to_frame(r, w.contact_impulse() + 3 * at, part);
    for (int j = 0; j < 3; ++j) p[AT_IMPULSE + j] = part[j];
    to_frame(r, w.contact_slip() + 3 * at, part);
    // The slip of a tire is in the frame of the wheel.
    const bool tire = r[AT_LAW] == real(LAW_TIRE);
    for (int j = 0; j < 3; ++j) p[AT_SLIP + j] = tire ? real(w.contact_slip()[3 * at + j]) : part[j];
    stored before[6];
    real arm[6];
    double points[6];
    read_numbers<6>(w.contact_arm() + 6 * at, before);
    for (int j = 0; j < 6; ++j) arm[j] = real(before[j]);
    put_numbers<6>(arm, p + AT_ARM_BEFORE);
    read_numbers<6>(w.contact_anchor() + 6 * at, points);
    put_anchor<6>(points, anchor + LANES * 6 * k);
    p[AT_AGE] = real(w.contact_age()[at]);
}
// Return whether the law has a friction torque about an axis of the frame.
GPUSIM_FN bool has_torque(Lane r, const double* law, int axis) {
    const bool patch = r[AT_LAW] == real(LAW_CONTENSOU), tire = r[AT_LAW] == real(LAW_TIRE);
    if (axis == 0) return patch || r[AT_SPINNING] > real(0);
    if (tire) return (axis == 1 ? law[LAW_AT_WIDTH] : law[LAW_AT_ROLLING_RESISTANCE]) > 0.0;
    return !patch && r[AT_ROLLING] > real(0);
}
GPUSIM_FN void load_lane(const World& w, int slot) {
    Lane r = lane_at(w, slot);
    double* anchor = w.record_anchor() + anchor_offset(slot);
    r[AT_MOVED] = r[AT_MOVED + 1] = real(-1);
    if (!is_filled(w, slot)) return;
    const int m = w.color_member()[slot];
    const double *law = pair_law(w, m), *normal = w.pair_normal() + 3 * m;
    for (int side = 0; side < 2; ++side) {
        const int body = side_body(w, m, side);
        r[AT_BODIES + side] = real(body);
        // Index of the body whose velocity the manifold changes, or -1 for a static body.
        r[AT_MOVED + side] = real(w.dynamic()[body] ? body : -1);
        r[AT_ROLLS + side] = real(w.shape_rolls()[w.pair_shapes()[2 * m + side]]);
    }
    r[AT_COUNT] = real(w.pair_points()[m]);
    r[AT_LAW] = real(law[2]);
    r[AT_SOFT] = law[0] > 0.0 ? real(1) : real(0);
    real frame[9], part[3];
    for (int j = 0; j < 3; ++j) {
        anchor[LANES * (24 + j)] = normal[j];
        r[AT_BEND + j] = w.pair_bend()[3 * m + j];
    }
    set_frame(w, m, r, normal, frame);
    pair_material(w, m, r);
    to_frame(r, w.pair_torque() + 3 * m, part);
    for (int j = 0; j < 3; ++j) r[AT_TORQUE + j] = has_torque(r, law, j) ? part[j] : real(0);
    to_frame(r, w.pair_force() + 3 * m, part);
    r[AT_SHEAR] = part[1];
    r[AT_SHEAR + 1] = part[2];
    for (int k = 0; k < w.pair_points()[m]; ++k) load_point(w, m, k, r, anchor);
}
template <class R> GPUSIM_FN void clear_record(R r, int first, int end) {
    const NUMBER(R) none[2] = {};
    for (int k = first; k < end; k += 2) put_numbers<2>(none, r + k);
}
// Return the number of points if all records of an item are used and have the same number of points. Otherwise, return 0.
GPUSIM_FN int common_points(const World& w, int slot) {
    if (!is_filled(w, slot + ITEM_LANES - 1)) return 0;
    const int points = w.pair_points()[w.color_member()[slot]];
    for (int l = 1; l < ITEM_LANES; ++l)
        if (w.pair_points()[w.color_member()[slot + l]] != points) return 0;
    return points;
}
// Item: records. The phase runs once per step, after stage color_contacts.
GPUSIM_PHASE void load_pair(const World& w, int item) {
    if (item >= record_items(w)) return;
    const int slot = item * ITEM_LANES, points = common_points(w, slot);
    Item r = item_at(w, slot);
    if (points) {  // the stages overwrite all other parts of the records
        clear_record(r, AT_RESTITUTION / 2 * 2, FIRST_POINT);
        for (int k = 0; k < points; ++k) clear_record(point_record(r, k), AT_GAMMA, AT_INVERSE_MASS);
    } else {
        clear_record(r, 0, RECORD_SIZE);
        for (int k = 0; k < ANCHOR_SIZE; ++k)
            for (int l = 0; l < ITEM_LANES; ++l) w.record_anchor()[anchor_offset(slot) + LANES * k + l] = 0.0;
    }
    for (int l = 0; l < ITEM_LANES; ++l) load_lane(w, slot + l);
}
// Return whether a point bounced. After a bounce, the next contact starts without impulses.
template <class R> GPUSIM_FN auto bounced(R p) { return (p[AT_IMPACT] > real(0)) & (p[AT_IMPULSE] > real(0)); }
// Return the normal impulse in the friction limit.
template <class R> GPUSIM_FN auto rubbing_load(R p) { return p[AT_IMPULSE] * p[AT_INVERSE_MASS + 2] + p[AT_PUSHED]; }
template <class R> GPUSIM_FN auto sticks(R r, R p) {
    typedef NUMBER(R) N;
    N first = p[AT_IMPULSE + 1], second = p[AT_IMPULSE + 2];
    const auto tire = r[AT_LAW] == real(LAW_TIRE);
    if (any(tire)) {
        first = choose(tire, N(r[AT_TIRE_SHARES] * first), first);
        second = choose(tire, N(r[AT_TIRE_SHARES + 1] * second), second);
    }
    const N friction = sqrt_(N(first * first + second * second));
    const N load = rubbing_load(p);
    return (load > real(0)) & (friction < real(SLIDING_SHARE) * r[AT_FRICTION] * load);
}
GPUSIM_FN void store_point(const World& w, int m, int k, ReadLane r) {
    const int at = 4 * m + k;
    const ReadLane p = point_record(r, k);
    const bool gone = bounced(p);
    const real none = real(0);
    from_frame(r, gone ? none : p[AT_IMPULSE], gone ? none : p[AT_IMPULSE + 1], gone ? none : p[AT_IMPULSE + 2],
               w.contact_impulse() + 3 * at);
    from_frame(r, p[AT_SLIP], p[AT_SLIP + 1], p[AT_SLIP + 2], w.contact_slip() + 3 * at);
    for (int j = 0; r[AT_LAW] == real(LAW_TIRE) && j < 3; ++j) w.contact_slip()[3 * at + j] = stored(p[AT_SLIP + j]);
    real arm[6];
    stored stored_arm[6];
    take_numbers<6>(p + AT_ARM_BEFORE, arm);
    for (int j = 0; j < 6; ++j) stored_arm[j] = stored(arm[j]);
    write_numbers<6>(stored_arm, w.contact_arm() + 6 * at);
    w.contact_age()[at] = int(p[AT_AGE]);
    w.contact_mode()[at] = !(rubbing_load(p) > real(0)) ? CONTACT_FLIGHT : sticks(r, p) ? CONTACT_STICKING : CONTACT_SLIDING;
}
// Store the current position of a point that moves over a surface.
GPUSIM_FN void store_moving_points(const World& w, int m, ReadLane r, const double* anchor) {
    if (!(r[AT_ROLLS] + r[AT_ROLLS + 1] > real(0))) return;
    for (int j = 0; j < 3; ++j) w.pair_normal()[3 * m + j] = anchor[LANES * (24 + j)];
    for (int j = 0; j < 6 * w.pair_points()[m]; ++j) w.contact_anchor()[24 * m + j] = anchor[LANES * j];
}
// Item: records. At the end of a step, copy impulses, slips and arms to the state.
GPUSIM_PHASE void store_pair(const World& w, int item) {
    if (item >= record_items(w)) return;
    for (int slot = item * ITEM_LANES; slot < (item + 1) * ITEM_LANES; ++slot) {
        if (!is_filled(w, slot)) continue;
        const int m = w.color_member()[slot];
        const ReadLane r = read_lane(w, slot);
        for (int k = 0; k < w.pair_points()[m]; ++k) store_point(w, m, k, r);
        store_moving_points(w, m, r, w.record_anchor() + anchor_offset(slot));
        from_frame(r, r[AT_TORQUE], r[AT_TORQUE + 1], r[AT_TORQUE + 2], w.pair_torque() + 3 * m);
        from_frame(r, real(0), r[AT_SHEAR], r[AT_SHEAR + 1], w.pair_force() + 3 * m);
    }
}
