// Stage solve with the direct solver (gpusim/reference/solve/direct_solve.py).
#pragma once
#include "../accuracy.cuh"
#include "../joints/coupled_laws.cuh"
#include "../joints/curvature.cuh"
#include "../joints/factor.cuh"
#include "../joints/modes.cuh"

#define GUARD_KEEP 1
#define GUARD_WEIGH 2
#define GUARD_RESTORE 3
#define GUARD_RELEASE 4
#define GUARD_RUNAWAY 5   // keep the bias, and release the joints
#define GUARD_STRAIGHT 6  // release the joints, without bias in the rest of the substep
#define NO_AXIS 0x7fffffff

GPUSIM_PHASE void diagonal_row(const World& w, int row) {
    const int n = w.block(), c = row / n, r = row - c * n;
    w.diagonal()[row] = w.row_used()[row] ? w.mass_blocks()[c * n * n + r * n + r] + hub_response(w, row) : real(1);
}
GPUSIM_PHASE void start_row(const World& w, int row) {
    diagonal_row(w, row);
    w.gamma()[row] = w.target()[row] = w.solved()[row] = real(0);
}
#if !GPUSIM_WIDE
// Set compliance and target of axis row k in its mode. Sticking rows are rigid.
GPUSIM_FN void fill_axis(const World& w, int k) {
    const int mode = w.mode()[k], contact = mode & CONTACT_BITS, row = w.axis_row()[k];
    if (is_swept_row(w, row)) return;
    real impulse, slope;
    linear_part(w, k, mode, &impulse, &slope);
    // Rows with the slope 0 get a tiny slope, so that p = P up to round-off.
    slope = max_(slope, real(MIN_SLOPE) / w.response()[k]);
    const real stop = contact == AT_LOWER ? w.velocity_lower()[k] : (contact == AT_UPPER ? w.velocity_upper()[k] : real(0));
    w.gamma()[row] = contact >= STICK ? real(0) : real(1) / slope;
    w.target()[row] = contact >= STICK ? stop : impulse / slope;
}
// Start with the mode of the last substep, if its piece of the law still exists.
GPUSIM_PHASE void start_axis(const World& w, int k) {
    if (is_swept_row(w, w.axis_row()[k])) return;
    const real response = max_(w.diagonal()[w.axis_row()[k]], real(MIN_NUMBER)), infinite = real(1.0 / 0.0);
    w.response()[k] = response;
    const int contact = w.axis_mode()[k] & CONTACT_BITS;
    bool gone = !(h_prev(w) > real(0));
    gone |= contact == AT_LOWER && !(abs_(w.velocity_lower()[k]) < infinite);
    gone |= contact == AT_UPPER && !(abs_(w.velocity_upper()[k]) < infinite);
    gone |= contact < AT_LOWER && (w.law_friction()[k] > real(0)) != (contact > 0);
    int mode = w.axis_mode()[k];
    if (gone) solve_row(w, k, w.rate()[k], response, &mode);
    w.mode()[k] = mode;
    fill_axis(w, k);
}
// Find worlds with fast rotors and without contacts. Record rotors that are too fast.
GPUSIM_PHASE void find_spin(const World& w, int) {
    bool fast = false, too_fast = false;
    for (int b = 0; b < w.bodies(); ++b) {
        if (!(w.rotor()[4 * b + 3] > 0.0)) continue;
        real axis[3], swing[3];
        const real spin = rotor_spin(w, b, axis), angle = abs_(spin) * real(w.h);
        fast |= angle > real(MIN_SPIN);
        if (!(nutation(w, b, spin) > real(MAX_NUTATION))) continue;
        too_fast = true;
        for (int k = 0; k < 3; ++k) swing[k] = w.twist()[6 * b + 3 + k] - spin * axis[k];
        if (real(w.h) * norm3(swing) > real(MIN_SWING)) raise_to(w.spin_peak(), tagged(double(angle), b));
    }
    *w.spinning() = fast && !too_fast && !GPUSIM_SWEPT && !touches(w);
}
GPUSIM_FN bool is_spinning(const World& w) { return w.rotors() && *w.spinning(); }
GPUSIM_FN int max_passes(const World& w) { return is_spinning(w) ? ROTOR_PASSES : PASSES; }
GPUSIM_FN int max_refreshes(const World& w) { return is_spinning(w) ? ROTOR_PASSES : MAX_REFRESHES; }
GPUSIM_PHASE void start_passes(const World& w, int) {
    *w.unconverged() = 0;
    *w.passes_remaining() = max_passes(w);
    *w.refreshes() = *w.hold_bias() = *w.bias_fits() = 0;
    *w.since_factor() = *w.switches() = *w.stalled() = *w.changed() = *w.stale() = *w.guard_action() = 0;
    *w.refactor() = 1;
    *w.all_in_contact() = 0;
    *w.first_axis() = NO_AXIS;
    *w.worst() = *w.worst_change() = *w.first_error() = *w.load_error() = *w.contact_residual_now() = real(0);
    *w.factor_damping() = 0.0;
    *w.weak() = *w.softening() = real(0);
    *w.softens() = 0;
}
// If a pivot is weak, increase the diagonal and factor again.
GPUSIM_PHASE void judge_pivots(const World& w, int) {
    *w.softens() = *w.weak() > real(0) && *w.softening() == real(0);
    *w.weak() = real(0);
    if (*w.softens()) *w.softening() = real(SOFTENING);
}
GPUSIM_PHASE void end_softening(const World& w, int) { *w.softens() = 0; }
#endif
#if !GPUSIM_WIDE
// Release axis k, because friction, limits or stiff springs would keep rigid rows from closing a gap.
GPUSIM_PHASE void let_axis_go(const World& w, int k) {
    if (!is_swept_row(w, w.axis_row()[k])) w.gamma()[w.axis_row()[k]] = w.response()[k] / real(MIN_SLOPE);
}
#endif
// Compute the residual of each row (m/s).
GPUSIM_PHASE void residual_row(const World& w, int item) {
    const RowPart at = row_part(w, item);
    const int taken = w.constraint_slots()[at.block];
    const int n = w.block(), slots = w.slots(), first = at.block * n, *body = w.constraint_bodies() + at.block * slots;
    const int coupled = coupled_number(w, at.block);
    const real* law = coupled < 0 ? nullptr : coupled_block(w, coupled);
    for (int row = first + at.row; row < first + at.end; ++row) {
        if (is_swept_row(w, row)) {
            w.rhs()[row] = real(0);
            continue;
        }
        const real response = w.diagonal()[row], gamma = w.gamma()[row];
        real compliance = (gamma + real(REGULARIZATION) * response) * w.solved()[row];
        if (law)
            for (int k = 0; k < n; ++k)
                if (first + k != row) compliance += law[(row - first) * n + k] * w.solved()[first + k];
        const real* j = w.jacobian() + 6 * (at.block * slots * n + row - first);
        real velocity = dot6(j, w.twist() + 6 * body[0]);
        for (int s = 1; s < taken; ++s) velocity += dot6(j + 6 * s * n, w.twist() + 6 * body[s]);
        const real residual = w.target()[row] - velocity - w.bias()[row] - compliance;
        w.rhs()[row] = residual;
        if (!w.row_used()[row]) continue;
        raise_where(gamma == real(0), w.worst(), residual);
        raise_where(true, w.worst_change(), residual * (response / (response + gamma)));
    }
}
#if !GPUSIM_WIDE
// Return the maximum error of the rows (m/s or rad/s) at which the passes end.
GPUSIM_FN real settled_error(const World& w) {
    if (w.loop_constraints()) return real(LOOPS_SETTLED);
    const bool contacts = !GPUSIM_SWEPT && *w.all_in_contact() && *w.contact_residual_now() <= real(CONTACTS_SETTLED);
    return contacts ? max_(real(SETTLED), real(CONTACTS_SETTLED * w.h * norm3(w.gravity()))) : real(SETTLED);
}
// End the passes if the bias matches the velocities and no row has a residual. The guard stores the solution of the
// first pass, and restores this solution if later refreshes diverge.
GPUSIM_PHASE void end_passes(const World& w, int) {
    *w.correcting() = *w.guard_action() = 0;
    if (*w.passes_remaining() <= 0) return;  // in the staged launch, other worlds may have remaining passes
    const int since = *w.since_factor();
    const bool refreshed = since > 0 && !*w.hold_bias();
    const real worst = *w.worst();
    if (since == 0 && !*w.switches()) *w.load_error() = worst;
    if (since == 1) {
        *w.guard_action() = GUARD_KEEP;
        *w.first_error() = worst;
    }
    const bool settled = refreshed && *w.worst_change() <= settled_error(w);
    if (settled) {
        *w.passes_remaining() = 0;
        *w.bias_fits() = 1;
    }
    *w.correcting() = *w.passes_remaining() > 0;
    if (since == 2 && worst > real(ROUNDING)) {
        const bool far = *w.first_error() > real(FAR_RATIO) * *w.load_error();
        if (!far && refreshed) *w.guard_action() = GUARD_WEIGH;
        if (far && worst > real(CONTRACTION) * *w.first_error()) *w.guard_action() = GUARD_RESTORE;
    }
    // Store the residual if the passes end because all rows have settled.
    *w.worst() = settled ? worst : real(0);
    *w.worst_change() = real(0);
}
#endif
// Sums over all rows in a fixed order: first inside parts of the constraints, then over the parts.
GPUSIM_FN int row_parts(const World& w) { return (w.constraints() - 1) / part_size(w.constraints()) + 1; }
GPUSIM_FN int first_row(const World& w, int part) {
    return min_(w.rows(), part * part_size(w.constraints()) * w.block());
}
GPUSIM_FN double part_total(const World& w, const double* parts) {
    double sum = 0.0;
    for (int part = 0; part < row_parts(w); ++part) sum += parts[part];
    return sum;
}
GPUSIM_FN mask is_stiff(const World& w, int row) { return w.gamma()[row] <= real(LOOSE); }
// Sum the energy r x with diag(A) instead of A, before the solve.
GPUSIM_PHASE void sum_plain_energy(const World& w, int part) {
    if (!any(*w.guard_action() == whole(GUARD_WEIGH))) return;
    double sum = 0.0;
    for (int row = first_row(w, part); row < first_row(w, part + 1); ++row) {
        const double residual = double(w.rhs()[row]), response = double(w.diagonal()[row] + w.gamma()[row]);
        sum = choose((response > 0.0) & is_stiff(w, row), sum + residual * residual / response, sum);
    }
    w.plain_energy()[part] = sum;
}
// Sum the energy r x with x = A^-1 r, between the forward and the backward solve.
GPUSIM_PHASE void sum_energy(const World& w, int part) {
    const whole action = *w.guard_action();
    if (!any((action == whole(GUARD_KEEP)) | (action == whole(GUARD_WEIGH)))) return;
    double sum = 0.0;
    for (int row = first_row(w, part); row < first_row(w, part + 1); ++row) {
        sum = choose(is_stiff(w, row), sum + double(w.rhs()[row]) * double(w.delta()[row]), sum);
    }
    w.energy()[part] = sum;
}
#if !GPUSIM_WIDE
// Restore the first solution. With large rotations, end the passes. Otherwise, restart the joints with a damped factor.
// Each restart increases the damping.
GPUSIM_FN void restart_passes(const World& w, int action, double damping) {
    *w.guard_action() = action;
    *w.factor_damping() = damping;
    *w.since_factor() = *w.refreshes() = 0;
    *w.hold_bias() = *w.refactor() = 1;
    *w.passes_remaining() = max_passes(w);
}
// Return twice the kinetic energy after the kick. The sum ends when it exceeds ``limit``.
GPUSIM_FN double kicked_energy(const World& w, double limit) {
    double sum = 0.0;
    for (int b = 0; b < w.bodies() && !(sum > limit); ++b) {
        if (!w.dynamic()[b]) continue;
        const real *v = w.twist_kicked() + 6 * b, *momentum = w.momentum_kicked() + 3 * b;
        sum += double(dot3(v, v)) / double(w.inverse_mass()[b]) + double(dot3(momentum, v + 3));
    }
    return sum;
}
// Return twice the energy that the solve has added, without the positive work of axis rows.
GPUSIM_FN double added_energy(const World& w) {
    double sum = 0.0, driven = 0.0;
    for (int b = 0; b < w.bodies(); ++b) {
        if (!w.dynamic()[b]) continue;
        const real *now = w.twist() + 6 * b, *kicked = w.twist_kicked() + 6 * b;
        real more[3], both[6], change[3];
        subtract3(now, kicked, more);
        for (int k = 0; k < 6; ++k) both[k] = now[k] + kicked[k];
        momentum_change(w, b, change);
        sum += double(dot3(more, both)) / double(w.inverse_mass()[b]) + double(dot3(change, both + 3));
    }
    for (int k = 0; k < w.axes(); ++k) {
        const int row = w.axis_row()[k];
        driven += double(w.solved()[row]) * double(row_velocity(w, row, w.twist()) + row_velocity(w, row, w.twist_kicked()));
    }
    return driven > 0.0 ? sum - driven : sum;
}
// Check the first pass of loops. If the pass runs away, restart with a damped factor, and finally without bias.
GPUSIM_PHASE void guard_loops(const World& w, int) {
    if (*w.guard_action() != GUARD_KEEP) return;
    const double energy = *w.first_energy(), before = *w.factor_damping();
    const bool bends = *w.first_error() * real(w.h) > real(MAX_BEND) * real(w.usual_lever());
    if (!bends && !(*w.softening() > real(0))) return;
    const bool far = bends && *w.first_error() > real(FAR_RATIO) * *w.load_error();
    const bool runs_away = energy > RUNAWAY * kicked_energy(w, energy / RUNAWAY);
    if (!far && !runs_away) return;
    const bool gaining = added_energy(w) > GAIN * kicked_energy(w, 1.0 / 0.0);
    if (!gaining && !runs_away) return;
    const double damping = DAMPING * before + (before > 0.0 ? 0.0 : RUNAWAY_DAMPING);
    if (damping <= MAX_DAMPING) return restart_passes(w, GUARD_RUNAWAY, damping);
    if (!gaining || *w.refreshes() >= max_refreshes(w)) return;
    restart_passes(w, GUARD_STRAIGHT, before);
    *w.refreshes() = max_refreshes(w);
}
GPUSIM_PHASE void guard(const World& w, int) {
    const int action = *w.guard_action();
    if (action == GUARD_KEEP) *w.first_energy() = part_total(w, w.energy());
    if (action == GUARD_RESTORE) {
        *w.passes_remaining() = 0;
        *w.stalled() = 1;
    }
    if (action != GUARD_WEIGH) return;
    *w.guard_action() = 0;
    const double energy = part_total(w, w.energy()), growth = sqrt_(energy / *w.first_energy());
    const double before = *w.factor_damping();
    const double damping = DAMPING * (before > 0.0 ? before : growth * part_total(w, w.plain_energy()) / energy);
    if (growth > CONTRACTION && damping <= MAX_DAMPING) restart_passes(w, GUARD_RELEASE, damping);
}
#endif
GPUSIM_FN mask keeps(whole action) { return (action == whole(GUARD_KEEP)) | (action >= whole(GUARD_RUNAWAY)); }
GPUSIM_FN mask releases(whole action) { return action >= whole(GUARD_RELEASE); }
GPUSIM_PHASE void guard_row(const World& w, int row) {
    const whole action = *w.guard_action();
    if (!any(action > whole(0))) return;
    const mask keep = keeps(action), release = releases(action);
    const mask back = action >= whole(GUARD_RESTORE), direct = release & mask(!is_swept_row(w, row));
    const real saved = choose_at(keep, w.solved() + row, w.kept_impulse() + row);
    w.kept_impulse()[row] = saved;
    w.delta()[row] = choose(release, choose(direct, -saved, real(0)), w.delta()[row]);
    w.solved()[row] = choose(back, choose(direct, real(0), saved), w.solved()[row]);
}
GPUSIM_PHASE void guard_bias(const World& w, int row) {
    const whole action = *w.guard_action();
    if (!any(keeps(action) | releases(action))) return;
    w.kept_bias()[row] = choose_at(keeps(action), w.bias() + row, w.kept_bias() + row);
    const real bias = choose_at(releases(action), w.kept_bias() + row, w.bias() + row);
    w.bias()[row] = choose(action == whole(GUARD_STRAIGHT), real(0), bias);
}
GPUSIM_PHASE void guard_body(const World& w, int b) {
    const whole action = *w.guard_action();
    if (!any(action > whole(0))) return;
    const mask keep = keeps(action), release = releases(action);
    const mask back = action >= whole(GUARD_RESTORE);
    real moved[6] = {};
    if (any(release)) impulse_response(w, b, w.delta(), moved);
    for (int i = 6 * b; i < 6 * b + 6; ++i) {
        const real saved = choose_at(keep, w.twist() + i, w.kept_twist() + i);
        w.kept_twist()[i] = saved;
        w.twist()[i] = choose(back, saved + choose(release, moved[i - 6 * b], real(0)), w.twist()[i]);
    }
}
// Add the correction to the impulses and velocities.
GPUSIM_PHASE void correct_row(const World& w, int row) {
    if (!is_hub(w, row / w.block())) w.solved()[row] += w.delta()[row];
}
GPUSIM_PHASE void correct_body(const World& w, int i) { add_impulses(w, i, w.delta(), w.twist()); }
// The sweeps do not move hubs. The velocity change of a hub (in ``delta``) contains the effect of the contacts.
GPUSIM_PHASE void move_hub(const World& w, int c) {
    if (!is_hub(w, c)) return;
    const int body = w.hub_body()[c];
    real moved[6];
    impulse_response(w, body, w.delta(), moved);
    for (int k = 0; k < 6; ++k) w.twist()[6 * body + k] += w.delta()[c * w.block() + k] - moved[k];
}
#if !GPUSIM_WIDE
GPUSIM_PHASE void count_pass(const World& w, int) {
    *w.passes_remaining() -= 1;
    *w.since_factor() += 1;
    *w.refactor() = *w.changed() = *w.stale() = 0;
    *w.first_axis() = NO_AXIS;
}
// Refresh the bias only when the modes no longer change, because the velocities of a temporary mode would distort the
// bias. The number of refreshes is limited.
GPUSIM_PHASE void plan_bias(const World& w, int) {
    *w.hold_bias() = *w.since_factor() == 0 || *w.refreshes() >= max_refreshes(w);
    *w.refreshes() += *w.since_factor() > 0;
}
// Do not switch modes in worlds that may not factor again, because the factor would no longer match the rows.
GPUSIM_FN bool may_switch(const World& w) { return *w.switches() < w.iterations() + 2 * (w.axes() + w.clamps()); }
// Find the next mode of axis k. If ``again`` is true, the impulses no longer contain self-stress. A row that is outside
// its piece keeps the mode that the first call found.
GPUSIM_SHARED void find_next_mode(const World& w, int k, bool again) {
    if (is_swept_row(w, w.axis_row()[k])) return;
    const int mode = w.mode()[k], next = adjacent_mode(w, k);
    if (!again || next != mode || !off_stop(w, k)) w.wanted_mode()[k] = next;
    if (w.wanted_mode()[k] == mode) return;
    if (!may_switch(w)) {
        set_flag(w.unconverged());
        return;
    }
    set_flag(w.changed());
    lower_to(w.first_axis(), k);
}
GPUSIM_PHASE void want_mode(const World& w, int k) { find_next_mode(w, k, false); }
GPUSIM_PHASE void want_mode_again(const World& w, int k) { find_next_mode(w, k, true); }
// If a mode would change in a loop, remove self-stress and find the modes again.
GPUSIM_PHASE void judge_modes(const World& w, int) {
    *w.stressed() = *w.changed();
    *w.changed() = 0;
    *w.first_axis() = NO_AXIS;
}
// Switching all rows at once is fast but may cycle. After many switches, switch only the row with the lowest index.
GPUSIM_PHASE void switch_mode(const World& w, int k) {
    if (is_swept_row(w, w.axis_row()[k])) return;
    const bool careful = *w.switches() >= CAREFUL_AFTER;
    if (*w.changed() && !careful) w.mode()[k] = w.wanted_mode()[k];
    if (*w.changed() && careful && k == *w.first_axis()) w.mode()[k] = first_move(w.mode()[k], w.wanted_mode()[k]);
    fill_axis(w, k);
    const int row = w.axis_row()[k];
    if (abs_(w.gamma()[row] - w.factored_gamma()[row]) > real(STALE) * w.factored_gamma()[row]) set_flag(w.stale());
}
GPUSIM_PHASE void end_refit(const World& w, int) {
    if ((*w.changed() || *w.stale()) && may_switch(w)) {
        *w.refactor() = 1;
        *w.switches() += 1;
        *w.since_factor() = 0;
        *w.passes_remaining() = max_passes(w);
    }
}
#endif
