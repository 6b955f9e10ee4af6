// Push-outs: position impulses that correct penetration in the drift (equations:
// gpusim/reference/contacts/contact_push.py).
#pragma once
#include "../solve/contact_direct.cuh"

GPUSIM_PHASE void start_push(const World& w, int i) { w.displacement()[i] = real(0); }
GPUSIM_PHASE void start_push_row(const World& w, int row) { w.delta()[row] = real(0); }
template <class R, class N> GPUSIM_SHARED void push_points(R r, Sweep<N>& s) {
    const N none{};
    N frame[9];
    take(r + AT_FRAME, 9, frame);
    for (int k = 0; k < max_points(r); ++k) {
        R p = point_record(r, k);
        N offset[3], velocity[3], wrench[6];
        take(p + AT_OFFSET, 3, offset);
        velocity_at(s.twist, offset, velocity);
        const N old = p[AT_PUSHED], error = p[AT_PUSH] - dot3(frame, velocity) - p[AT_PUSH_YIELD] * old;
        const N now = max_(N(old + error / (p[AT_MASS] + p[AT_PUSH_YIELD])), none);
        const N change[3] = {choose(r[AT_COUNT] > real(k), N(now - old), none), none, none};
        p[AT_PUSHED] = old + change[0];
        point_wrench(frame, offset, change, wrench);
        for (int j = 0; j < 6; ++j) wrench[j] = choose(r[AT_COUNT] > real(k), wrench[j], none);
        apply(r, wrench, s);
    }
}
// Item: manifold i of a list (a color or the overflow).
GPUSIM_PHASE void push_contact(const World& w, int list, int i) {
    const int slot = list_slot(w, list, i);
    Item r = item_at(w, slot);
    Sweep<NUMBER(Item)> s;
    start_sweep(r, w.displacement(), s);
    push_points(r, s);
    move_item(w, slot, r, list == w.max_colors(), s.wrench, w.displacement());
}
GPUSIM_PHASE void add_push_parts(const World& w, int b) { add_parts(w, b, w.displacement()); }
// Push out the n-th articulated manifold. ``delta`` contains the pending correction of the joints.
GPUSIM_PHASE void push_articulated(const World& w, int m, int n) {
    Lane r = record(w, m);
    Sweep<real> s;
    start_sweep(r, w.displacement(), s);
    add_path_twist(w, n, w.path_part(), s.twist);
    push_points(r, s);
    move_joined(w, m, r, s.wrench, w.displacement());
    write_numbers<6>(s.wrench, w.path_wrench());
}
// Add the effect of the joints on the velocity of body b, and convert the velocity to a displacement.
GPUSIM_PHASE void end_push(const World& w, int b) {
    real moved[6] = {real(0), real(0), real(0), real(0), real(0), real(0)};
    if (w.direct() && articulated_size(w) > 0) {
        if (!is_hub_body(w, b)) impulse_response(w, b, w.delta(), moved);
        else for (int k = 0; k < 6; ++k) moved[k] = w.delta()[w.body_hub()[b] * w.block() + k];
    }
    for (int k = 0; k < 6; ++k) w.displacement()[6 * b + k] = real(w.h) * (w.displacement()[6 * b + k] + moved[k]);
}
