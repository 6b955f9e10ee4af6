// Constraint rows of manifolds: geometry and masses (prepare_contacts), biases (after the kick), slips (drift).
// Equations: gpusim/reference/contacts/contact_rows.py.
#pragma once
#include "contact_geometry.cuh"

// Compute the velocity of B relative to A at an offset from the center of the manifold. ``twist`` is the
// relative twist at the center.
template <class N> GPUSIM_FN void velocity_at(const N* twist, const N* arm, N* out) {
    cross3(twist + 3, arm, out);
    for (int k = 0; k < 3; ++k) out[k] += twist[k];
}
template <class R, class N> GPUSIM_FN void relative_motion(R r, const N* a, const N* b, N* out) {
    N arm[6], of_a[3], of_b[3];
    take(r + AT_ARM, 6, arm);
    cross3(a + 3, arm, of_a);
    cross3(b + 3, arm + 3, of_b);
    for (int k = 0; k < 3; ++k) {
        out[k] = (b[k] + of_b[k]) - (a[k] + of_a[k]);
        out[3 + k] = b[3 + k] - a[3 + k];
    }
}
template <class R, class N> GPUSIM_FN void relative_twist(R r, const real* velocity, N* out) {
    N a[6], b[6];
    gather_twist(r, 0, velocity, a);
    gather_twist(r, 1, velocity, b);
    relative_motion(r, a, b, out);
}
// Compute the motion of one body due to a wrench about the center of the manifold. ``side`` is 0 for A and 1 for B.
template <class R, class N> GPUSIM_FN void side_motion(R r, int side, const N* wrench, N* out) {
    const real sign = side ? real(1) : real(-1);
    N j[7], arm[3], torque[3];
    take(r + (AT_INERTIA_INVERSE + 7 * side), 7, j);
    take(r + (AT_ARM + 3 * side), 3, arm);
    cross3(arm, wrench, torque);
    for (int k = 0; k < 3; ++k) torque[k] = sign * (torque[k] + wrench[3 + k]);
    for (int k = 0; k < 3; ++k) out[k] = sign * wrench[k] * j[0];
    out[3] = j[1] * torque[0] + j[2] * torque[1] + j[3] * torque[2];
    out[4] = j[2] * torque[0] + j[4] * torque[1] + j[5] * torque[2];
    out[5] = j[3] * torque[0] + j[5] * torque[1] + j[6] * torque[2];
}
// Load the inverse masses and inverse inertias (xx, xy, xz, yy, yz, zz) of both bodies.
template <class R> GPUSIM_FN void load_inertia_inverse(const World& w, R r) {
    for (int side = 0; side < 2; ++side) {
        NUMBER(R) inverse[9], inverse_mass;
        R out = r + (AT_INERTIA_INVERSE + 7 * side);
        gather(r, side, w.inverse_mass(), 1, 1, &inverse_mass);
        gather(r, side, w.inertia_inverse_effective(), 9, 9, inverse);
        out[0] = inverse_mass;
        for (int k = 0; k < 3; ++k) out[1 + k] = inverse[k];
        out[4] = inverse[4];
        out[5] = inverse[5];
        out[6] = inverse[8];
    }
}
// out = response wrench.
template <class R, class N> GPUSIM_FN void respond(R r, const N* wrench, N* out) {
    for (int k = 0; k < 6; ++k) {
        N row[6];
        take_numbers<6>(r + (AT_RESPONSE + 6 * k), row);
        out[k] = row[0] * wrench[0] + row[1] * wrench[1] + row[2] * wrench[2] + row[3] * wrench[3] + row[4] * wrench[4] + row[5] * wrench[5];
    }
}
// Add the relative twist due to a wrench (P, T) on one body with the mass split into n parts. With the arm c and the
// inverse inertia J: rate J T + J [c]x P, velocity (1/m - [c]x J [c]x) P - [c]x J T.
template <class N> GPUSIM_FN void add_response(const N* c, const N* m, N parts, N* out) {
    const N inverse[9] = {m[1], m[2], m[3], m[2], m[4], m[5], m[3], m[5], m[6]};
    const N x = c[0], y = c[1], z = c[2], mass = parts * m[0];
    N jc[9], cjc[9];
    for (int i = 0; i < 3; ++i) {  // J [c]x
        const N* j = inverse + 3 * i;
        jc[3 * i] = j[1] * z - j[2] * y;
        jc[3 * i + 1] = j[2] * x - j[0] * z;
        jc[3 * i + 2] = j[0] * y - j[1] * x;
    }
    for (int j = 0; j < 3; ++j) {  // [c]x J [c]x
        cjc[j] = y * jc[6 + j] - z * jc[3 + j];
        cjc[3 + j] = z * jc[j] - x * jc[6 + j];
        cjc[6 + j] = x * jc[3 + j] - y * jc[j];
    }
    for (int i = 0; i < 3; ++i) {
        out[7 * i] += mass;
        for (int j = 0; j < 3; ++j) {
            out[6 * i + j] -= parts * cjc[3 * i + j];
            out[6 * (3 + i) + j] += parts * jc[3 * i + j];
            out[6 * i + 3 + j] += parts * jc[3 * j + i];
            out[6 * (3 + i) + 3 + j] += parts * inverse[3 * i + j];
        }
    }
}
// ``skipped`` contains a bit for each side that cannot move.
template <class R> GPUSIM_FN void free_response(const World& w, bool shared, R r, int skipped = 0) {
    typedef NUMBER(R) N;
    N out[36];
    for (int k = 0; k < 36; ++k) out[k] = N{};
    for (int side = 0; side < 2; ++side) {
        if (skipped >> side & 1) continue;
        N inverse[7], arm[3], parts = Every<N>::of(real(1));
        take(r + (AT_INERTIA_INVERSE + 7 * side), 7, inverse);
        take(r + (AT_ARM + 3 * side), 3, arm);
        if (shared) {
            gather(r, side, w.body_parts(), 1, 1, &parts);
            parts = max_(parts, Every<N>::of(real(1)));
        }
        add_response(arm, inverse, parts, out);
    }
    put_numbers<36>(out, r + AT_RESPONSE);
}
// Compute the wrench of a unit impulse at a point along axis d of the frame.
template <class R, class N> GPUSIM_FN void unit_wrench(R r, R p, int d, N* wrench) {
    N offset[3];
    take(r + (AT_FRAME + 3 * d), 3, wrench);
    take(p + AT_OFFSET, 3, offset);
    cross3(offset, wrench, wrench + 3);
}
// Compute the velocities of points per unit impulse: entries nn, tn, sn, tt, ts, ss.
template <class R> GPUSIM_SHARED void point_masses(R r) {
    typedef NUMBER(R) N;
    const int points = max_points(r);
    for (int n = 0; n < points; ++n) {
        R p = point_record(r, n);
        N wrench[18], moved[6], mass[9];
        for (int d = 0; d < 3; ++d) unit_wrench(r, p, d, wrench + 6 * d);
        for (int d = 0; d < 3; ++d) {
            respond(r, wrench + 6 * d, moved);
            for (int i = d; i < 3; ++i) {
                const N* unit = wrench + 6 * i;
                mass[3 * d + i] = unit[0] * moved[0] + unit[1] * moved[1] + unit[2] * moved[2] + unit[3] * moved[3]
                    + unit[4] * moved[4] + unit[5] * moved[5];
            }
        }
        for (int d = 0; d < 3; ++d) p[AT_MASS + d] = mass[d];
        p[AT_MASS + 3] = mass[4];
        p[AT_MASS + 4] = mass[5];
        p[AT_MASS + 5] = mass[8];
    }
}
// Manifolds with points without a warm start get more passes.
template <class R> GPUSIM_FN void choose_passes(R r) {
    typedef NUMBER(R) N;
    const N count = r[AT_COUNT];
    N age = Every<N>::of(real(NEW_AGE));
    for (int k = 0; k < max_points(r); ++k)
        age = choose(count > real(k), min_(age, N(point_record(r, k)[AT_AGE])), age);
    const N many = choose(age < real(NEW_AGE), Every<N>::of(real(NEW_PASSES)), Every<N>::of(real(POINT_PASSES)));
    r[AT_PASSES] = choose(count > real(1), many, Every<N>::of(real(1)));
}
// Warm start with the impulses of the last substep.
template <class R> GPUSIM_FN void start_impulses(const World& w, R r) {
    typedef NUMBER(R) N;
    const double before = *w.kick_before();
    const real factor = before > 0.0 ? kick_time(w) / real(before) : real(0);
    const N none = Every<N>::of(real(0));
    for (int k = 0; k < max_points(r); ++k) {
        R p = point_record(r, k);
        const auto gone = bounced(p);
        for (int j = 0; j < 3; ++j) p[AT_IMPULSE + j] = choose(gone, none, N(p[AT_IMPULSE + j] * factor));
        p[AT_IMPULSE] = max_(N(p[AT_IMPULSE]), none);
        p[AT_IMPACT] = p[AT_PUSH] = none;
    }
    for (int j = 0; j < 3; ++j) r[AT_TORQUE + j] = r[AT_TORQUE + j] * factor;
    for (int j = 0; j < 2; ++j) r[AT_SHEAR + j] = r[AT_SHEAR + j] * factor;
}
// Item: records. Compute geometry, masses and initial impulses.
GPUSIM_PHASE void prepare_pair(const World& w, int item) {
    if (!has_records(w, item)) return;
    const int slot = item * ITEM_LANES;
    Item r = item_at(w, slot);
    locate_record(w, slot, r);
    load_inertia_inverse(w, r);
    choose_passes(r);
    start_impulses(w, r);
    if (slot >= w.color_first()[w.max_colors() + 1]) return;   // articulated: the direct solver computes the response
    free_response(w, slot >= w.color_first()[w.max_colors()], r);
    point_masses(r);
    for (int k = 0; k < max_points(r); ++k) point_record(r, k)[AT_PUSH_YIELD] = real(PUSH_YIELD) * point_record(r, k)[AT_MASS];
}

template <class R> GPUSIM_FN auto continues(const World& w, R p) {
    return p[AT_AGE] > (h_prev(w) > real(0) && !w.semi_implicit() ? real(0) : real(NO_FORCE));
}
// Return whether the normal and the rotations of the bodies are current: the code recomputes the point in every
// substep, or the step has one substep.
template <class R> GPUSIM_FN auto is_recomputed(const World& w, R r) {
    return r[AT_ROLLS] + r[AT_ROLLS + 1] > (w.substeps() == 1 ? real(-1) : real(0));
}
// Return whether middle_body must run. In models with joints, the curvature stage already computes these rates.
GPUSIM_FN bool finds_middle(const World& w) {
    return (w.substeps() == 1 || w.rolling_shapes()) && !w.semi_implicit() && !w.constraints();
}
// Add the velocity due to the rotation of free bodies between the start and the middle of the drift.
template <class R, class N> GPUSIM_FN void add_middle(const World& w, R r, R p, N* out) {
    for (int side = 0; side < 2; ++side) {
        N middle[3], rate[3], arm[3], velocity[3], moves;
        gather(r, side, w.midpoint(), 3, 3, middle);
        gather(r, side, w.twist_kicked() + 3, 6, 3, rate);
        gather(r, side, w.dynamic(), 1, 1, &moves);
        subtract3(middle, rate, rate);
        for (int j = 0; j < 3; ++j) arm[j] = r[AT_ARM + 3 * side + j] + p[AT_OFFSET + j];
        cross3(rate, arm, velocity);
        const auto applies = (moves > real(0)) & is_recomputed(w, r);
        for (int j = 0; j < 3; ++j)
            out[j] = choose(applies, side ? N(out[j] + velocity[j]) : N(out[j] - velocity[j]), out[j]);
    }
}
template <class R, class N> GPUSIM_FN void arm_velocity(const World& w, R r, R p, const N* rates, N* out) {
    N arm_change[6], of_a[3], of_b[3];
    const real half = real(w.h) / (real(2) * h_prev(w));
    for (int j = 0; j < 6; ++j) arm_change[j] = half * (r[AT_ARM + j] + p[AT_OFFSET + j % 3] - p[AT_ARM_BEFORE + j]);
    cross3(rates, arm_change, of_a);
    cross3(rates + 3, arm_change + 3, of_b);
    subtract3(of_b, of_a, out);
    if (any(is_recomputed(w, r))) add_middle(w, r, p, out);
}
// Compute the angular velocity in the middle of the drift from the kicked velocities, without joint impulses.
GPUSIM_PHASE void middle_body(const World& w, int b) { midpoint_rate(w, b, w.twist_kicked(), w.midpoint() + 3 * b); }
// Return the compliance of touching points, relative to their response. The compliance damps errors that remain after a
// few sweeps. A load needs about n sweeps to pass through a pile of n manifolds. With fewer sweeps, points are
// therefore softer.
GPUSIM_FN real softness(const World& w) {
    const double sweeps = FIRM_MANIFOLDS * w.iterations() / double(min_(*w.touching(), int(FIRM_MANIFOLDS)));
    return real(1.0 / max_(sweeps * sweeps, double(SOFTEST)));
}
// Compute the divisors of a sweep: 1/(response + compliance), 1/determinant for the tangents, and the
// friction load per normal impulse.
template <class R> GPUSIM_FN void invert_point(R r, R p, bool joined = false) {
    typedef NUMBER(R) N;
    const N one = Every<N>::of(real(1));
    R mass = p + AT_MASS;
    p[AT_INVERSE_MASS] = one / (mass[0] + p[AT_GAMMA]);
    p[AT_INVERSE_MASS + 1] = one / (mass[3] * mass[5] - mass[4] * mass[4]);
    p[AT_INVERSE_MASS + 2] = joined ? one : choose(r[AT_SOFT] > real(0), one, N(one + p[AT_GAMMA] / mass[0]));
}
// Inputs of set_bias_point that are the same for all points of an item.
template <class N> struct PointInputs {
    N before[6], kicked[6];  // relative twists
    N rates[6];              // angular velocities of both bodies before the kick
    N rotation_scale;            // factor of the half-step rotation term
    N carried;               // speed at which a loaded point yields
    real softness;           // compliance of a point, relative to its response
    real push_yield;         // compliance of a push-out, relative to the response
    bool joined;             // True for bodies with joints, because their resting points are springs
    real moving_velocity;    // normal velocity below which a point counts as moving (m/s)
};
template <class N> GPUSIM_FN N rotation_scale(const World& w, const N* rates) {
    const N ratio = real(w.h * w.h / (ROTATION_LIMIT * ROTATION_LIMIT)) * max_(dot3(rates, rates), dot3(rates + 3, rates + 3));
    const N square = ratio * ratio, one = Every<N>::of(real(1));
    return one / (square * square + one);
}
// Set the biases of a point from the velocities before and after the kick.
template <class R, class N> GPUSIM_FN void set_bias_point(const World& w, R r, R p, const PointInputs<N>& inputs) {
    const real h = real(w.h), slop = real(w.contact_slop());
    const N none = Every<N>::of(real(0)), gap = p[AT_GAP];
    N offset[3], n[9], u[3], v[3], bend[3] = {none, none, none}, normal_bias = none;
    take(p + AT_OFFSET, 3, offset);
    take(r + AT_FRAME, 9, n);
    velocity_at(inputs.before, offset, u);
    velocity_at(inputs.kicked, offset, v);
    const auto continuing = continues(w, p);
    if (any(continuing)) {
        arm_velocity(w, r, p, inputs.rates, bend);
        for (int j = 0; j < 3; ++j) bend[j] = choose(continuing, N(inputs.rotation_scale * bend[j]), none);
        if (any(is_recomputed(w, r))) {
            N normal_change[3];
            take(r + AT_BEND, 3, normal_change);
            const N moved = h / (real(2) * h_prev(w)) * dot3(normal_change, u);
            normal_bias = choose(continuing & is_recomputed(w, r), N(inputs.rotation_scale * moved), none);
        }
    }
    // Within the slop, the normal velocity of points is 0, so that round-off does not change the distribution of loads.
    // Bouncing points and points on bodies with joints have no slop.
    const N tolerance = inputs.joined ? none : choose(r[AT_RESTITUTION] > real(0), none, Every<N>::of(slop));
    const auto separated = gap > tolerance;
    const N excess = -(gap + slop), closing = choose(separated, N(gap / h), none);
    // A trial step needs no values for the drift.
    const bool trial = *w.forward_only();
    const N compliance = inputs.softness * p[AT_MASS];
    const auto deep = inputs.joined ? excess > real(0) : excess > real(NO_FORCE);
    const auto far = gap > (inputs.joined ? Every<N>::of(slop) : tolerance);
    const auto rigid = far | deep | !(p[AT_AGE] > real(0)) | (dot3(n, v) < inputs.moving_velocity);
    p[AT_GAMMA] = trial ? none : choose(rigid, none, compliance);
    // The bias keeps the penetration that a load causes. The push-out corrects the remaining penetration.
    const N push = min_(N(real(PUSH_SHARE) * excess / h), Every<N>::of(real(w.max_depenetration_speed())));
    const N correction = inputs.joined ? choose(rigid, none, N(-gap / h)) : push;
    p[AT_CARRIED] = trial ? none : choose(correction > real(0), min_(correction, inputs.carried), none);
    const N remaining = push - p[AT_CARRIED];
    const auto pushes = (excess > real(0)) & (remaining > real(PUSH_BAND * PUSH_SHARE) * slop / h);
    p[AT_PUSH] = choose(pushes, trial ? none : (real(1) + inputs.push_yield) * remaining, N(-closing));
    p[AT_PUSHED] = none;
    p[AT_BIAS] = closing - p[AT_CARRIED] + dot3(n, bend) + normal_bias;
    const auto tire = r[AT_LAW] == real(LAW_TIRE);
    for (int j = 1; j < 3; ++j) {
        const N slip = p[AT_SLIP + j] * (real(SLIP_SHARE) / h);
        p[AT_BIAS + j] = dot3(n + 3 * j, bend) + choose(tire, none, slip);
    }
    p[AT_IMPACT] = impact_speed(w, N(r[AT_RESTITUTION]), gap, dot3(n, u), dot3(n, v));
    invert_point(r, p, inputs.joined);
}
// Set the rows of soft normal laws, and of all friction laws except Coulomb's.
GPUSIM_FN void set_bias_lane(const World& w, int slot) {
    Lane r = lane_at(w, slot);
    const int m = w.color_member()[slot];
    if (m < 0 || (!(r[AT_SOFT] > real(0)) && r[AT_LAW] == real(LAW_COULOMB))) return;
    set_law_bias(w, m, r);
    const bool soft = r[AT_SOFT] > real(0), tire = r[AT_LAW] == real(LAW_TIRE);
    if (!soft && !tire) return;
    real before[6], u[3], arm[3], n[3];
    relative_twist(r, w.twist_before(), before);
    if (tire) set_tire(w, m, r, before);
    take(r + AT_FRAME, 3, n);
    for (int k = 0; soft && k < w.pair_points()[m]; ++k) {
        Lane p = point_record(r, k);
        take(p + AT_OFFSET, 3, arm);
        velocity_at(before, arm, u);
        soften_point(w, m, p, dot3(n, u));
        invert_point(r, p);
    }
}
// Return the speed at which a load presses contact points together because of the compliance (m/s).
template <class R> GPUSIM_FN NUMBER(R) carried_speed(const World& w, R r, real softness) {
    typedef NUMBER(R) N;
    N maximum = Every<N>::of(real(PUSH_WEIGHTS * w.h * norm3(w.gravity())));
    for (int k = 0; k < max_points(r); ++k) {
        R p = point_record(r, k);
        maximum = choose(r[AT_COUNT] > real(k), max_(N(p[AT_MASS] * p[AT_IMPULSE]), maximum), maximum);
    }
    return softness * maximum;
}
// Item: records.
GPUSIM_PHASE void set_bias_pair(const World& w, int item) {
    const int slot = item * ITEM_LANES;
    if (!has_records(w, item)) return;
    Item r = item_at(w, slot);
    PointInputs<NUMBER(Item)> inputs;
    NUMBER(Item) a[6], b[6];
    gather_twist(r, 0, w.twist_before(), a);
    gather_twist(r, 1, w.twist_before(), b);
    relative_motion(r, a, b, inputs.before);
    copy3(a + 3, inputs.rates);
    copy3(b + 3, inputs.rates + 3);
    inputs.rotation_scale = rotation_scale(w, inputs.rates);
    relative_twist(r, w.twist_kicked(), inputs.kicked);
    const bool articulated = slot >= w.color_first()[w.max_colors() + 1];
    inputs.joined = articulated;
    inputs.moving_velocity = articulated ? real(-REST_WEIGHTS * w.h * norm3(w.gravity())) : real(-NO_FORCE);
    inputs.softness = articulated ? real(SOFT_JOINED) : softness(w);
    inputs.push_yield = articulated ? real(PUSH_YIELD_JOINED) : real(PUSH_YIELD);
    inputs.carried = carried_speed(w, r, inputs.softness);
    for (int k = 0; k < max_points(r); ++k) set_bias_point(w, r, point_record(r, k), inputs);
    for (int l = 0; l < ITEM_LANES; ++l) set_bias_lane(w, slot + l);
    for (int k = 0; k < max_points(r); ++k)
        if (any((r[AT_COUNT] > real(k)) & (point_record(r, k)[AT_PUSH] > real(0)))) set_flag(w.pushing());
}

// Update the bristles of a tire after the drift. Sliding bristles do not deflect further.
template <class R, class N> GPUSIM_FN void deflect(R r, R p, N slip1, N slip2, N* out) {
    const N first = r[AT_TIRE_KEPT] * p[AT_SLIP + 1] + r[AT_TIRE_GAIN] * slip1;
    const N second = r[AT_TIRE_KEPT + 1] * p[AT_SLIP + 2] + r[AT_TIRE_GAIN + 1] * slip2;
    const N x = r[AT_TIRE_STIFFNESS] * first * r[AT_TIRE_SHARES], y = r[AT_TIRE_STIFFNESS + 1] * second * r[AT_TIRE_SHARES + 1];
    const N size = sqrt_(N(x * x + y * y)), bound = real(3) * (r[AT_FRICTION] * rubbing_load(p)), one = Every<N>::of(real(1));
    const auto sliding = size > bound;
    const N scale = choose(sliding, N(bound / choose(sliding, size, one)), one);
    out[0] = scale * first;
    out[1] = scale * second;
}
// Update the slip of a sticking point in the drift, and store its arms for the next substep.
template <class R, class N> GPUSIM_FN void slip_point(const World& w, R r, R p, const N* twist) {
    const real h = real(w.h);
    const N none = Every<N>::of(real(0));
    N offset[3], n[9], u[3];
    take(p + AT_OFFSET, 3, offset);
    take(r + AT_FRAME, 9, n);
    velocity_at(twist, offset, u);
    // Only Coulomb friction accumulates the slip of a sticking point.
    const auto sticking = (r[AT_LAW] == real(LAW_COULOMB)) & sticks(r, p);
    const auto tire = r[AT_LAW] == real(LAW_TIRE);
    N bristles[2] = {none, none};
    if (any(tire)) deflect(r, p, dot3(n + 3, u) + p[AT_BIAS + 1], dot3(n + 6, u) + p[AT_BIAS + 2], bristles);
    for (int j = 1; j < 3; ++j) {
        // The bias includes the velocity from the rotation of the arms, and the correction of the slip.
        const N slip = p[AT_SLIP + j], arm_speed = p[AT_BIAS + j] - slip * (real(SLIP_SHARE) / h);
        p[AT_SLIP + j] = choose(sticking, N(slip + h * (dot3(n + 3 * j, u) + arm_speed)),
                                choose(tire, bristles[j - 1], none));
    }
    p[AT_SLIP] = none;
    for (int j = 0; j < 6; ++j) p[AT_ARM_BEFORE + j] = r[AT_ARM + j] + offset[j % 3];
    p[AT_AGE] = p[AT_AGE] + real(1);
}
// Item: records.
GPUSIM_PHASE void slip_pair(const World& w, int item) {
    const int slot = item * ITEM_LANES;
    if (item == 0) *w.substep() += 1;
    if (!has_records(w, item)) return;
    Item r = item_at(w, slot);
    NUMBER(Item) twist[6];
    relative_twist(r, w.twist(), twist);
    for (int k = 0; k < max_points(r); ++k) slip_point(w, r, point_record(r, k), twist);
}
GPUSIM_FN real size3(const real* v) { return sqrt_(dot3(v, v)); }
// Return the maximum speed that does not count as a jump.
GPUSIM_FN real min_jump(const World& w) {
    const real g[3] = {real(w.gravity()[0]), real(w.gravity()[1]), real(w.gravity()[2])};
    return real(CARRY_SMALL) * size3(g) * kick_time(w);
}
// Return whether a contact changes the initial velocities of a world.
GPUSIM_FN bool contact_jumps(const World& w) {
#if GPUSIM_SHAPES
    if (!touches(w)) return false;
    for (int slot = 0; slot < record_items(w) * ITEM_LANES; ++slot) {
        if (!is_filled(w, slot)) continue;
        const int points = w.pair_points()[w.color_member()[slot]];
        const Lane r = lane_at(w, slot);
        real twist[6], u[3], offset[3], n[3];
        relative_twist(r, w.twist_before(), twist);
        take(r + AT_FRAME, 3, n);
        for (int k = 0; k < points; ++k) {
            const Lane p = point_record(r, k);
            take(p + AT_OFFSET, 3, offset);
            velocity_at(twist, offset, u);
            if (p[AT_IMPULSE] > real(0) && -dot3(n, u) > real(CARRY_SMALL) * size3(u) + min_jump(w)) return true;
        }
    }
#endif
    return false;
}
