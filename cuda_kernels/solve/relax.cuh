// Stage relax: solve the velocities again after the drift (equations: gpusim/reference/solve/relax.py).
#pragma once
#include "contact_direct.cuh"
#include "drift.cuh"
#include "../joints/ropes.cuh"

// Return whether sweeps run between the forward and the backward solve.
GPUSIM_FN bool sweeps_within(const World& w) { return GPUSIM_SWEPT || touches(w); }
GPUSIM_PHASE void start_relax(const World& w, int) { *w.relaxing() = *w.done() = 0; }
GPUSIM_PHASE void start_contact_sweeps(const World& w, int) {
    *w.contact_change() = *w.largest_change() = *w.largest_load() = real(0);
    *w.wanted_change() = *w.greatest_impulse() = real(0);
    *w.done() = *w.sweep_count() = 0;
}
// Return the maximum number of sweeps in a pass. The first pass of a direct solve has twice as many sweeps, because
// later passes correct the residual of its contacts in the joints. Sweeps that include joints are expensive, so the
// function halves their number.
GPUSIM_FN int sweeps_of_pass(const World& w) {
    if (!w.direct() || !w.constraints()) return w.iterations();
    const bool first = *w.since_factor() == 0;
    return GPUSIM_SWEPT ? (first ? w.iterations() : (w.iterations() + 1) / 2) : (first ? 2 * w.iterations() : w.iterations());
}
// End a sweep over contacts, and store its maximum change.
GPUSIM_PHASE void end_contact_sweep(const World& w, int) {
    const real change = max_(*w.contact_change(), *w.largest_change());
    w.sweep_change()[(*w.sweep_count())++] = change;
    const bool converged = change <= max_(real(w.impulse_tolerance()), real(CONVERGED) * *w.largest_load());
    *w.done() = converged || *w.sweep_count() >= sweeps_of_pass(w);
    *w.largest_change() = real(0);
    store_contact_residual(w);
}
// If axis k has hit a limit, set its velocity bound to the speed after the impact.
GPUSIM_PHASE void find_axis_impact(const World& w, int k) {
    const real restitution = real(w.limit_restitution()[k]);
    const int contact = w.mode()[k] & CONTACT_BITS;
    if (!(restitution > real(0)) || (contact != AT_LOWER && contact != AT_UPPER)) return;
    // Use the acceleration of the last substep, because the kick does not include the forces of the joints.
    const real sign = contact == AT_LOWER ? real(1) : real(-1), before = w.rate()[k];
    const real pull = h_prev(w) > real(0) ? (before - w.rate_old()[k]) / h_prev(w) : real(0);
    const real kicked = h_prev(w) > real(0) ? before + pull * kick_time(w) : row_velocity(w, w.axis_row()[k], w.twist_kicked());
    const real drive = limit_rate_of(w, k, contact == AT_UPPER);
    real& bound = contact == AT_LOWER ? w.velocity_lower()[k] : w.velocity_upper()[k];
    const real gap = max_(-sign * (bound - drive) * real(w.h), real(0));
    const real speed = impact_speed(w, restitution, gap, sign * (before - drive), sign * (kicked - drive));
    if (!(speed > real(0))) return;
    bound = drive + sign * speed;
    set_flag(w.relaxing());
}
// In the staged launch, skip the sweeps of worlds that do not relax.
GPUSIM_PHASE void enter_relax(const World& w, int) { *w.done() = !*w.relaxing(); }
GPUSIM_PHASE void refill_axis(const World& w, int k) { fill_axis(w, k); }
GPUSIM_PHASE void resume_passes(const World& w, int) {
    *w.passes_remaining() = RELAX_PASSES;
    *w.since_factor() = *w.changed() = *w.stale() = *w.refactor() = 0;
    *w.hold_bias() = 1;
    *w.refreshes() = max_refreshes(w);
    *w.first_axis() = NO_AXIS;
}
// An axis with a bound that drives it away from a limit had an impact. Discard the axis rate before the impact.
GPUSIM_PHASE void store_rate(const World& w, int k) {
    w.axis_velocity()[k] = stored(w.rate_next()[k]);
    const bool bounced = w.velocity_lower()[k] > limit_rate_of(w, k, 0) || w.velocity_upper()[k] < limit_rate_of(w, k, 1);
    if (bounced) w.axis_velocity_before()[k] = w.axis_velocity()[k];
}
