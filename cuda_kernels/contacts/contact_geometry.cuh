// Positions of contact points at the current poses, in double precision: arms from both centers of mass, and gaps.
#pragma once
#include "contact_record.cuh"
#include "../joints/curvature.cuh"

// Access to some lanes of an item: as many lanes as a vector has doubles.
template <class T> struct PartLane;
template <> struct PartLane<double> {
    static MEMBER double load(const double* from) { return *from; }
    static MEMBER void store(double value, real* to) { *to = real(value); }
    static MEMBER double of(double x) { return x; }
    static MEMBER double load_real(const real* from) { return double(*from); }
    static MEMBER void set(double& x, int, double value) { x = value; }
};
#if ITEM_LANES > 1
typedef real Part __attribute__((vector_size(DOUBLE_LANES * sizeof(real)), aligned(sizeof(real)), may_alias));
template <> struct PartLane<WideDouble> {
    typedef Raw<double>::type Values;
    static MEMBER WideDouble load(const double* from) { return *reinterpret_cast<const WideDouble*>(from); }
    static MEMBER void store(WideDouble value, real* to) { *reinterpret_cast<Part*>(to) = __builtin_convertvector(value.v, Part); }
    static MEMBER WideDouble of(double x) { return WideDouble::of(x); }
    static MEMBER WideDouble load_real(const real* from) {
        return WideDouble(__builtin_convertvector(*reinterpret_cast<const Part*>(from), Values));
    }
    static MEMBER void set(WideDouble& x, int lane, double value) { reinterpret_cast<double*>(&x)[lane] = value; }
};
#endif
template <class T> struct Poses {
    T position[6], rotation[18];
};
template <class T> GPUSIM_FN void gather_poses(const World& w, Lane first, int lanes, Poses<T>& out) {
    for (int l = 0; l < lanes; ++l)
        for (int side = 0; side < 2; ++side) {
            const int b = int(first.first[LANES * (AT_BODIES + side) + l]);
            const double *position = w.position() + 3 * b, *rotation = w.rotation() + 9 * b;
            for (int k = 0; k < 3; ++k) PartLane<T>::set(out.position[3 * side + k], l, position[k]);
            for (int k = 0; k < 9; ++k) PartLane<T>::set(out.rotation[9 * side + k], l, rotation[k]);
        }
}
template <class T> GPUSIM_FN void world_anchor(Lane r, int side, const T* rotation, const double* anchor, T* out) {
    T local[3];
    for (int k = 0; k < 3; ++k) local[k] = PartLane<T>::load(anchor + LANES * k);
    const auto rolls = PartLane<T>::load_real(&r[AT_ROLLS + side]) > 0.0;
    for (int k = 0; k < 3; ++k) {
        const T* row = rotation + 3 * k;
        out[k] = choose(rolls, local[k], T(row[0] * local[0] + row[1] * local[1] + row[2] * local[2]));
    }
}
// Compute the arms of a point (A, then B), and return the gap.
template <class T> GPUSIM_FN T locate_point(Lane r, const Poses<T>& poses, const double* anchor, const T* normal,
                                            T* arms) {
    typedef PartLane<T> Part_;
    world_anchor(r, 0, poses.rotation, anchor, arms);
    world_anchor(r, 1, poses.rotation + 9, anchor + 3 * LANES, arms + 3);
    T separation[3];
    for (int j = 0; j < 3; ++j) separation[j] = (poses.position[3 + j] - poses.position[j]) + (arms[3 + j] - arms[j]);
    const T gap = dot3(normal, separation);
    // The point on the rolling surface moves with its body. The point on the other surface stays on the opposite side
    // of the gap.
    const T rolls_a = Part_::load_real(&r[AT_ROLLS]), rolls_b = Part_::load_real(&r[AT_ROLLS + 1]);
    const T weight = 0.5 * (1.0 - rolls_a + rolls_b);
    for (int j = 0; j < 3; ++j) {
        const T along = 0.5 * gap * normal[j], across = separation[j] - gap * normal[j];
        arms[j] = arms[j] + (along + weight * across);
        arms[3 + j] = arms[3 + j] - (along + (1.0 - weight) * across);
    }
    return gap;
}
// Compute the gaps, the center of the manifold, and the points relative to the center, for lanes from ``slot`` on.
template <class T> GPUSIM_FN void locate_lanes(const World& w, int slot, int lanes, int points) {
    typedef PartLane<T> Part_;
    Lane r = lane_at(w, slot);
    const double* anchor = w.record_anchor() + anchor_offset(slot);
    Poses<T> poses;
    gather_poses(w, r, lanes, poses);
    T normal[3], arms[24], middle[6];
    for (int j = 0; j < 3; ++j) normal[j] = Part_::load(anchor + LANES * (24 + j));
    for (int j = 0; j < 6; ++j) middle[j] = Part_::of(0.0);
    const T count = Part_::load_real(&r[AT_COUNT]);
    for (int k = 0; k < points; ++k) {
        T* point_arms = arms + 6 * k;
        Part_::store(locate_point(r, poses, anchor + LANES * 6 * k, normal, point_arms), &point_record(r, k)[AT_GAP]);
        for (int j = 0; j < 6; ++j) middle[j] = choose(count > double(k), T(middle[j] + point_arms[j]), middle[j]);
    }
    const T divisor = max_(count, Part_::of(1.0));
    for (int j = 0; j < 6; ++j) {
        middle[j] = middle[j] / divisor;
        Part_::store(middle[j], &r[AT_ARM + j]);
    }
    for (int k = 0; k < points; ++k)
        for (int j = 0; j < 3; ++j) Part_::store(arms[6 * k + j] - middle[j], &point_record(r, k)[AT_OFFSET + j]);
}
template <class R> GPUSIM_FN void locate_record(const World& w, int slot, R r) {
    const int points = max_points(r);
    for (int l = 0; l < ITEM_LANES; l += DOUBLE_LANES) locate_lanes<WideDouble>(w, slot + l, DOUBLE_LANES, points);
}
