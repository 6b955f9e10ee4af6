// Sweeps over manifolds (gpusim/reference/contacts/contact_solve.py). A sweep solves all points one after another.
#pragma once
#include "contact_rows.cuh"
#include "../joints/factor.cuh"

template <class N> struct Sweep {
    N twist[6];   // relative twist at the center of the manifold
    N wrench[6];  // sum of the wrenches so far, about the center
    N max_change;  // greatest change of an impulse
    N step[12];   // changes of the points' impulses
};
template <class R, class N> GPUSIM_FN void apply(R r, const N* wrench, Sweep<N>& s) {
    N moved[6];
    respond(r, wrench, moved);
    for (int k = 0; k < 6; ++k) {
        s.twist[k] += moved[k];
        s.wrench[k] += wrench[k];
    }
}
template <class N> GPUSIM_FN void update_max_change(Sweep<N>& s, N change) {
    const N size = abs_(change);
    s.max_change = choose(size <= s.max_change, s.max_change, size);
}
// Compute the wrench of an impulse at a point. The impulse is in the contact frame.
template <class N> GPUSIM_FN void point_wrench(const N* frame, const N* arm, const N* impulse, N* wrench) {
    for (int k = 0; k < 3; ++k) wrench[k] = frame[k] * impulse[0] + frame[3 + k] * impulse[1] + frame[6 + k] * impulse[2];
    cross3(arm, wrench, wrench + 3);
}
// No additional compliance. For points on bodies with joints, contact_direct.cuh defines ``Floors``.
struct NoFloors {
    template <class N> MEMBER void add(int, const N*, N*) const {}
};
// Solve the normal impulse and then the friction of point k. Only ``live`` lanes change. With ``last``, do not update the
// twist, because no other point follows.
template <class R, class M, class N, class F>
GPUSIM_FN void sweep_point(R r, int k, const N* frame, M live, bool last, const F& floors, N* step, Sweep<N>& s) {
    R p = point_record(r, k);
    N offset[3], u[3], velocity[3], mass[3], friction[2], impulse[3], wrench[6], moved[6];
    const N none = Every<N>::of(real(0)), old = p[AT_IMPULSE];
    take(p + AT_OFFSET, 3, offset);
    take(p + (AT_MASS + 3), 3, mass);
    velocity_at(s.twist, offset, velocity);
    for (int d = 0; d < 3; ++d) u[d] = dot3(frame + 3 * d, velocity) + p[AT_BIAS + d];
    take(p + AT_IMPULSE, 3, impulse);
    floors.add(k, impulse, u);
    const N now = max_(N(old - (u[0] + p[AT_GAMMA] * old) * p[AT_INVERSE_MASS]), none);
    const N pressed = now - old, limit = r[AT_FRICTION] * (now * p[AT_INVERSE_MASS + 2] + p[AT_PUSHED]);
    const N u1 = u[1] + p[AT_MASS + 1] * pressed, u2 = u[2] + p[AT_MASS + 2] * pressed;
    take(p + (AT_IMPULSE + 1), 2, friction);
    const auto by_speed = r[AT_LAW] == real(LAW_REGULARIZED), by_force = r[AT_LAW] == real(LAW_COULOMB);
    if (any(by_force)) {
        N held[2] = {friction[0], friction[1]};
        coulomb(limit, mass, N(p[AT_INVERSE_MASS + 1]), u1, u2, held);
        for (int d = 0; d < 2; ++d) friction[d] = choose(by_force, held[d], friction[d]);
    }
    if (any(by_speed)) {
        N slowed[2] = {friction[0], friction[1]};
        regularized(limit, N(r[AT_SPEED]), mass, u1, u2, slowed);
        for (int d = 0; d < 2; ++d) friction[d] = choose(by_speed, slowed[d], friction[d]);
    }
    const auto by_tire = r[AT_LAW] == real(LAW_TIRE);
    if (any(by_tire)) {
        N held[2] = {friction[0], friction[1]};
        brush(r, limit, mass, u1, u2, held);
        for (int d = 0; d < 2; ++d) friction[d] = choose(by_tire, held[d], friction[d]);
    }
    const N after[3] = {now, friction[0], friction[1]};
    N change[3];
    for (int d = 0; d < 3; ++d) {
        change[d] = choose(live, N(after[d] - p[AT_IMPULSE + d]), none);
        p[AT_IMPULSE + d] = choose(live, after[d], N(p[AT_IMPULSE + d]));
        step[d] += change[d];
        update_max_change(s, change[d]);
    }
    if (last) return;
    point_wrench(frame, offset, change, wrench);
    respond(r, wrench, moved);
    for (int k = 0; k < 6; ++k) s.twist[k] = choose(live, N(s.twist[k] + moved[k]), s.twist[k]);
}
template <class R> GPUSIM_FN NUMBER(R) greatest_load(R r) {
    NUMBER(R) load{};
    for (int k = 0; k < max_points(r); ++k)
        load = choose(r[AT_COUNT] > real(k), max_(load, NUMBER(R)(point_record(r, k)[AT_IMPULSE])), load);
    return load;
}
template <class R> GPUSIM_FN NUMBER(R) total_normal(R r) {
    NUMBER(R) sum{};
    for (int k = 0; k < max_points(r); ++k) sum = sum + point_record(r, k)[AT_IMPULSE];
    return sum;
}
template <class R, class N> GPUSIM_FN N rotational_response(R r, const N* axis) {
    N sum{};
    for (int i = 0; i < 3; ++i) {
        R row = r + (AT_RESPONSE + 6 * (3 + i) + 3);
        sum = sum + axis[i] * (row[0] * axis[0] + row[1] * axis[1] + row[2] * axis[2]);
    }
    return sum;
}
template <class R, class N> GPUSIM_FN void push_torque(R r, const N* axis, N change, Sweep<N>& s) {
    const N none{}, wrench[6] = {none, none, none, axis[0] * change, axis[1] * change, axis[2] * change};
    apply(r, wrench, s);
    update_max_change(s, change);
}
GPUSIM_FN void resist_rotation(Lane r, int axis, real arm, real load, Sweep<real>& s) {
    if (!(arm > real(0))) return;
    const real limit = arm * load;
    real about[3];
    take(r + (AT_FRAME + 3 * axis), 3, about);
    const real old = r[AT_TORQUE + axis];
    const real now = clamped(old - dot3(about, s.twist + 3) / rotational_response(r, about), -limit, limit);
    r[AT_TORQUE + axis] = now;
    push_torque(r, about, now - old, s);
}
GPUSIM_SHARED void sweep_tire(Lane r, Sweep<real>& s) {
    const real load = total_normal(r);
    resist_rotation(r, 0, r[AT_SPINNING], load, s);
    if (r[AT_CAMBER + 1] > real(0)) {
        real ahead[3];
        take(r + AT_FRAME + 3, 3, ahead);
        const real old = r[AT_TORQUE + 1], now = camber_torque(r, load, dot3(ahead, s.twist + 3), rotational_response(r, ahead), old);
        r[AT_TORQUE + 1] = now;
        push_torque(r, ahead, now - old, s);
    }
    resist_rotation(r, 2, r[AT_ROLLING], load, s);
}
GPUSIM_SHARED void sweep_torques(Lane r, Sweep<real>& s) {
    const real load = total_normal(r);
    real frame[9];
    take(r + AT_FRAME, 9, frame);
    resist_rotation(r, 0, r[AT_SPINNING], load, s);
    if (!(r[AT_ROLLING] > real(0))) return;
    real now[2], size = real(0);
    const real limit = r[AT_ROLLING] * load;
    const real stiff = max_(rotational_response(r, frame + 3), rotational_response(r, frame + 6));
    for (int k = 0; k < 2; ++k) {
        now[k] = r[AT_TORQUE + 1 + k] - dot3(frame + 3 + 3 * k, s.twist + 3) / stiff;
        size += now[k] * now[k];
    }
    const real scale = size > limit * limit ? limit / sqrt_(size) : real(1);
    for (int k = 0; k < 2; ++k) {
        const real change = scale * now[k] - r[AT_TORQUE + 1 + k];
        r[AT_TORQUE + 1 + k] = scale * now[k];
        push_torque(r, frame + 3 + 3 * k, change, s);
    }
}
GPUSIM_SHARED void sweep_patch(const World& w, int m, Lane r, Sweep<real>& s) {
    const real load = r[AT_FRICTION] * total_normal(r), patch = r[AT_PATCH];
    const int pressure = int(pair_law(w, m)[3]);
    real frame[9], along[6], wrench[6] = {real(0), real(0), real(0), real(0), real(0), real(0)};
    take(r + AT_FRAME, 9, frame);
    const real *n = frame, *t = frame + 3;
    const real u1 = dot3(t, s.twist), u2 = dot3(t + 3, s.twist), spin = dot3(n, s.twist + 3);
    const real slide = sqrt_(u1 * u1 + u2 * u2), rim = patch * abs_(spin), both = slide + rim;
    real force, torque;
    patch_factors(w, pressure, both > real(0) ? slide : real(1), both > real(0) ? rim : real(0), &force, &torque);
    // A patch sticks if its speed is below PATCH_STICK.
    const real min_speed = real(PATCH_STICK);
    const real g = load * force / max_(max_(slide, min_speed * force), real(MIN_NUMBER));
    const real g_spin = load * patch * patch * torque / max_(max_(rim, min_speed * torque), real(MIN_NUMBER));
    copy3(t, wrench);
    respond(r, wrench, along);
    const real k = max_(dot3(t, along), real(MIN_NUMBER)), k_spin = rotational_response(r, n);
    const real now[3] = {-g * (u1 - k * r[AT_SHEAR]) / (real(1) + k * g), -g * (u2 - k * r[AT_SHEAR + 1]) / (real(1) + k * g),
                         -g_spin * (spin - k_spin * r[AT_TORQUE]) / (real(1) + k_spin * g_spin)};
    const real change[3] = {now[0] - r[AT_SHEAR], now[1] - r[AT_SHEAR + 1], now[2] - r[AT_TORQUE]};
    for (int j = 0; j < 3; ++j) {
        wrench[j] = t[j] * change[0] + t[3 + j] * change[1];
        wrench[3 + j] = n[j] * change[2];
        update_max_change(s, change[j]);
    }
    r[AT_SHEAR] = now[0];
    r[AT_SHEAR + 1] = now[1];
    r[AT_TORQUE] = now[2];
    apply(r, wrench, s);
}
// Solve the friction torques and patch friction of one lane.
GPUSIM_FN void solve_lane_friction(const World& w, int m, Lane r, Sweep<real>& s) {
    if (r[AT_LAW] == real(LAW_CONTENSOU)) sweep_patch(w, m, r, s);
    else if (r[AT_LAW] == real(LAW_TIRE)) sweep_tire(r, s);
    else if (r[AT_SPINNING] > real(0) || r[AT_ROLLING] > real(0)) sweep_torques(r, s);
}
template <class R> GPUSIM_FN auto has_manifold_friction(R r) {
    return (r[AT_LAW] == real(LAW_CONTENSOU)) | (r[AT_SPINNING] > real(0)) | (r[AT_ROLLING] > real(0)) | (r[AT_CAMBER + 1] > real(0));
}
GPUSIM_FN void solve_item_friction(const World& w, int slot, Lane r, Sweep<real>& s) {
    solve_lane_friction(w, w.color_member()[slot], r, s);
}
#if ITEM_LANES > 1
GPUSIM_FN void solve_item_friction(const World& w, int slot, Wide* r, Sweep<Wide>& s) {
    const Wide selected = choose(has_manifold_friction(r), Wide::of(real(1)), Wide{});
    for (int l = 0; l < LANES; ++l) {
        if (!(selected[l] > real(0))) continue;
        Sweep<real> one;
        one.max_change = s.max_change[l];
        for (int k = 0; k < 6; ++k) {
            one.twist[k] = s.twist[k][l];
            one.wrench[k] = s.wrench[k][l];
        }
        solve_lane_friction(w, w.color_member()[slot + l], lane_at(w, slot + l), one);
        set_lane(s.max_change, l, one.max_change);
        for (int k = 0; k < 6; ++k) {
            set_lane(s.twist[k], l, one.twist[k]);
            set_lane(s.wrench[k], l, one.wrench[k]);
        }
    }
}
#endif
// Solve all points one after another, then patch friction, then friction torques. ``s`` contains the wrench.
template <class R, class N, class F>
GPUSIM_SHARED void sweep_points(const World& w, int slot, R r, F floors, Sweep<N>& s) {
    const int points = max_points(r), passes = int(greatest_lane(r[AT_PASSES]));
    const bool manifold_friction = any(has_manifold_friction(r));
    const N none{};
    N frame[9];
    take(r + AT_FRAME, 9, frame);
    for (int k = 0; k < 3 * points; ++k) s.step[k] = none;
    N active = Every<N>::of(real(1));
    for (int pass = 0; pass < passes; ++pass) {
        const auto live = (r[AT_PASSES] > real(pass)) & (active > none);
        if (!any(live)) break;
        const N before = s.max_change;
        s.max_change = none;
        for (int k = 0; k < points; ++k) {
            const bool last = !manifold_friction && pass + 1 == passes && k + 1 == points;
            sweep_point(r, k, frame, live & (r[AT_COUNT] > real(k)), last, floors, s.step + 3 * k, s);
        }
        // The passes end when a pass changes the impulses very little.
        if (passes > 1) active = choose(s.max_change > real(PASS_SETTLED) * greatest_load(r), active, none);
        s.max_change = max_(before, s.max_change);
    }
    for (int k = 0; k < points; ++k) {
        N arm[3], wrench[6];
        take(point_record(r, k) + AT_OFFSET, 3, arm);
        point_wrench(frame, arm, s.step + 3 * k, wrench);
        for (int j = 0; j < 6; ++j) s.wrench[j] = choose(r[AT_COUNT] > real(k), N(s.wrench[j] + wrench[j]), s.wrench[j]);
    }
    if (manifold_friction) solve_item_friction(w, slot, r, s);
}
template <class R, class N> GPUSIM_FN void start_sweep(R r, const real* velocity, Sweep<N>& s) {
    for (int k = 0; k < 6; ++k) s.wrench[k] = N{};
    relative_twist(r, velocity, s.twist);
    s.max_change = N{};
}
// Add velocity changes to the bodies on one side.
GPUSIM_FN void add_twist(Lane r, int side, const real* change, real* velocity) {
    const int body = int(r[AT_MOVED + side]);
    for (int k = 0; body >= 0 && k < 6; ++k) velocity[6 * body + k] += change[k];
}
#if ITEM_LANES > 1
GPUSIM_FN void add_twist(Wide* r, int side, const Wide* change, real* velocity) {
    int body[LANES];
    whole_numbers(r[AT_MOVED + side], body);
    add_six(change, body, velocity);
}
#endif
template <class R, class N> GPUSIM_FN void move_sides(R r, const N* wrench, real* velocity) {
    for (int side = 0; side < 2; ++side) {
        N moved[6];
        side_motion(r, side, wrench, moved);
        add_twist(r, side, moved, velocity);
    }
}
// Store the velocity changes of an overflow manifold. add_parts sums these changes for each body.
template <class R, class N> GPUSIM_FN void store_parts(const World& w, int slot, R r, const N* wrench) {
    for (int side = 0; side < 2; ++side) {
        N moved[6];
        side_motion(r, side, wrench, moved);
        for (int l = 0; l < ITEM_LANES && is_filled(w, slot + l); ++l) {
            real* part = w.part_change() + 6 * (2 * w.color_member()[slot + l] + side);
            for (int k = 0; k < 6; ++k) part[k] = lane_of(moved[k], l);
        }
    }
}
template <class R, class N> GPUSIM_FN void move_item(const World& w, int slot, R r, bool shared, const N* wrench,
                                                     real* velocity) {
    if (shared) store_parts(w, slot, r, wrench);
    else move_sides(r, wrench, velocity);
}
// Nonsmooth nonlinear conjugate gradients (gpusim/reference/contacts/search_direction.py). The code stores the squares
// by pair, so that their sum does not depend on colors and lanes.
template <class R, class N> GPUSIM_FN void store_step(const World& w, int slot, R r, int lanes, const Sweep<N>& s) {
    N sum{};
    for (int k = 0; k < max_points(r); ++k) {
        R p = point_record(r, k);
        const N* step = s.step + 3 * k;
        put(step, 3, p + AT_DELTA);
        sum = choose(r[AT_COUNT] > real(k), N(sum + p[AT_MASS] * dot3(step, step)), sum);
    }
    for (int l = 0; l < lanes && is_filled(w, slot + l); ++l)
        w.sweep_square()[w.color_member()[slot + l]] = lane_of(sum, l);
}
// Return the number of parts of the pair list, for sums.
GPUSIM_FN int square_parts(const World& w) {
    const int count = *w.pair_count(), size = part_size(count);
    return size ? (count + size - 1) / size : 0;
}
GPUSIM_PHASE void sum_squares(const World& w, int part) {
    const int count = *w.pair_count(), size = part_size(count), last = min_(count, (part + 1) * size);
    double sum = 0.0;
    for (int m = part * size; m < last; ++m)
        if (w.pair_points()[m]) sum += double(w.sweep_square()[m]);
    w.square_sum()[part] = sum;
}
GPUSIM_PHASE void choose_beta(const World& w, int) {
    double sum = 0.0;
    for (int part = 0; part < square_parts(w); ++part) sum += w.square_sum()[part];
    const double before = *w.square_before();
    *w.beta() = sum < STEADY * before ? real(sum / before) : real(0);
    *w.square_before() = sum;
}
// Item: records.
GPUSIM_PHASE void extend_pair(const World& w, int item) {
    typedef NUMBER(Item) N;
    const int slot = item * ITEM_LANES;
    if (!has_records(w, item)) return;
    const real beta = *w.beta();
    Item r = item_at(w, slot);
    for (int k = 0; k < max_points(r); ++k) {
        Item p = point_record(r, k);
        for (int j = 0; j < 3; ++j) {
            const N increment = beta * p[AT_DIRECTION + j];
            p[AT_IMPULSE + j] = p[AT_IMPULSE + j] + increment;
            p[AT_DIRECTION + j] = beta > real(0) ? N(increment + p[AT_DELTA + j]) : N{};
        }
    }
    // friction torques and patch friction
    for (int j = 0; any(has_manifold_friction(r)) && j < 5; ++j) {
        const N now = r[AT_TORQUE + j], increment = beta * r[AT_WHOLE_DIRECTION + j];
        r[AT_WHOLE_DIRECTION + j] = beta > real(0) ? N(increment + (now - r[AT_WHOLE_SWEPT + j])) : N{};
        r[AT_TORQUE + j] = r[AT_WHOLE_SWEPT + j] = now + increment;
    }
}
// Move the numbers from ``first`` to ``end`` along their search direction. ``swept`` contains the values before the
// sweep.
GPUSIM_FN void extend_numbers(real beta, int first, int end, real* now, real* direction, real* swept) {
    for (int i = first; i < end; ++i) {
        const real along = beta * direction[i], step = now[i] - swept[i];
        now[i] += along;
        direction[i] = beta > real(0) ? along + step : real(0);
        swept[i] = now[i];
    }
}
#if WHOLE_BLOCKS
GPUSIM_FN void extend_six(real beta, int first, real* now, real* direction, real* swept) {
    const Six<real> was = Six<real>::load(now + first), along = Six<real>::load(direction + first) * beta, moved = was + along;
    const Six<real> step = was - Six<real>::load(swept + first);
    moved.store(now + first);
    (beta > real(0) ? along + step : Six<real>::zero()).store(direction + first);
    moved.store(swept + first);
}
#endif
// Items: body_items and row_items.
GPUSIM_PHASE void extend_body(const World& w, int i) {
#if WHOLE_BLOCKS
    extend_six(*w.beta(), 6 * i, w.twist(), w.twist_direction(), w.twist_sweep());
#else
    extend_numbers(*w.beta(), BODY_NUMBERS * i, BODY_NUMBERS * (i + 1), w.twist(), w.twist_direction(), w.twist_sweep());
#endif
}
GPUSIM_PHASE void extend_row(const World& w, int i) {
    const RowPart at = row_part(w, i);
    const int first = at.block * w.block();
#if WHOLE_BLOCKS
    if (w.block() == 6) return extend_six(*w.beta(), first, w.delta(), w.row_direction(), w.row_sweep());
#endif
    extend_numbers(*w.beta(), first + at.row, first + at.end, w.delta(), w.row_direction(), w.row_sweep());
}
GPUSIM_PHASE void start_direction_row(const World& w, int row) {
    w.row_sweep()[row] = w.delta()[row];
    w.row_direction()[row] = real(0);
}
GPUSIM_PHASE void start_direction_body(const World& w, int i) {
    w.twist_sweep()[i] = w.twist()[i];
    w.twist_direction()[i] = real(0);
}
GPUSIM_PHASE void start_direction_sum(const World& w, int) {
    *w.square_before() = 0.0;
    *w.sweep_count() = *w.done() = *w.condensed_failed() = 0;
}
GPUSIM_PHASE void start_direction_pair(const World& w, int item) {
    const int slot = item * ITEM_LANES;
    if (!has_records(w, item)) return;
    Item r = item_at(w, slot);
    for (int k = 0; k < max_points(r); ++k)
        for (int j = 0; j < 3; ++j) point_record(r, k)[AT_DIRECTION + j] = NUMBER(Item){};
    for (int j = 0; any(has_manifold_friction(r)) && j < 5; ++j) {
        r[AT_WHOLE_DIRECTION + j] = NUMBER(Item){};
        r[AT_WHOLE_SWEPT + j] = r[AT_TORQUE + j];
    }
}
// Record the largest impulse change of a sweep.
template <class R, class N> GPUSIM_FN void record_max_change(const World& w, int slot, R r, int lanes,
                                                             const Sweep<N>& s) {
    raise_to(w.contact_change(), greatest_lane(s.max_change));
    raise_to(w.largest_load(), greatest_lane(greatest_load(r)));
    if (w.iterations() > 1) store_step(w, slot, r, lanes, s);   // for the search direction of the next sweep
}
GPUSIM_SHARED void sweep_item(const World& w, int slot, bool shared) {
    Item r = item_at(w, slot);
    Sweep<NUMBER(Item)> s;
    start_sweep(r, w.twist(), s);
    sweep_points(w, slot, r, NoFloors(), s);
    move_item(w, slot, r, shared, s.wrench, w.twist());
    record_max_change(w, slot, r, ITEM_LANES, s);
}
template <class R, class N> GPUSIM_FN void warm_wrench(R r, N* wrench) {
    N frame[9], torque[3], shear[3] = {N{}, r[AT_SHEAR], r[AT_SHEAR + 1]};
    take(r + AT_FRAME, 9, frame);
    take(r + AT_TORQUE, 3, torque);
    for (int k = 0; k < 6; ++k) wrench[k] = N{};
    for (int n = 0; n < max_points(r); ++n) {
        N impulse[3], arm[3], added[6];
        take(point_record(r, n) + AT_IMPULSE, 3, impulse);
        take(point_record(r, n) + AT_OFFSET, 3, arm);
        point_wrench(frame, arm, impulse, added);
        for (int k = 0; k < 6; ++k) wrench[k] = choose(r[AT_COUNT] > real(n), N(wrench[k] + added[k]), wrench[k]);
    }
    for (int k = 0; k < 3; ++k) {
        wrench[k] += frame[3 + k] * shear[1] + frame[6 + k] * shear[2];
        wrench[3 + k] += frame[k] * torque[0] + frame[3 + k] * torque[1] + frame[6 + k] * torque[2];
    }
}
GPUSIM_SHARED void warm_item(const World& w, int slot, bool shared) {
    Item r = item_at(w, slot);
    NUMBER(Item) wrench[6];
    warm_wrench(r, wrench);
    move_item(w, slot, r, shared, wrench, w.twist());
}
// Add the changes of all overflow sides of body b, in a fixed order.
GPUSIM_FN void add_parts(const World& w, int b, real* velocity) {
    if (!overflow_size(w) || !w.dynamic()[b]) return;
    for (int n = w.part_start()[b]; n < w.part_start()[b + 1]; ++n)
        for (int k = 0; k < 6; ++k) velocity[6 * b + k] += w.part_change()[6 * w.part_side()[n] + k];
}
GPUSIM_PHASE void add_contact_parts(const World& w, int b) { add_parts(w, b, w.twist()); }
// Item: manifold i of a list (a color or the overflow).
GPUSIM_PHASE void warm_contact(const World& w, int list, int i) { warm_item(w, list_slot(w, list, i), list == w.max_colors()); }
GPUSIM_PHASE void sweep_contact(const World& w, int list, int i) { sweep_item(w, list_slot(w, list, i), list == w.max_colors()); }

// Item: records. Make touching points rigid for the solve after the drift. Points with an
// impact get their impact speed.
GPUSIM_PHASE void relax_pair(const World& w, int item) {
    typedef NUMBER(Item) N;
    const int slot = item * ITEM_LANES;
    if (!has_records(w, item)) return;
    const N none{};
    Item r = item_at(w, slot);
    // On bodies with joints, a point needs this solve if its carried speed exceeds PUSHED_OUT gamma impulse.
    const bool joined = slot >= w.color_first()[w.max_colors() + 1];
    for (int k = 0; k < max_points(r); ++k) {
        Item p = point_record(r, k);
        const auto rigid = (r[AT_COUNT] > real(k)) & !(r[AT_SOFT] > real(0));
        const N excess = joined ? N(p[AT_CARRIED] - real(PUSHED_OUT) * p[AT_GAMMA] * p[AT_IMPULSE])
                                : N(p[AT_GAMMA]);
        const auto yields = excess > real(0);
        if (any(rigid & (yields | bounced(p)))) set_flag(w.relaxing());
        const N impact = choose(p[AT_IMPULSE] > real(0), N(p[AT_IMPACT]), none);
        const N bias = choose(impact > real(0), N(-impact), N(p[AT_BIAS] + p[AT_CARRIED]));
        p[AT_IMPACT] = choose(rigid, impact, N(p[AT_IMPACT]));
        p[AT_GAMMA] = choose(rigid, none, N(p[AT_GAMMA]));
        p[AT_BIAS] = choose(rigid, bias, N(p[AT_BIAS]));
        invert_point(r, p);
    }
}
