// Active-set switching of axis rows in the direct solver (gpusim/reference/joints/modes.py).
#pragma once
#include "laws.cuh"

GPUSIM_FN int next_clamp(int clamp, real effort, real bound, real slack) {
    if (clamp == 0) return effort > bound + slack ? CLAMP_UP : (effort < -bound - slack ? CLAMP_DOWN : 0);
    if (clamp == CLAMP_UP) return effort < bound - slack ? 0 : clamp;
    return effort > -bound + slack ? 0 : clamp;
}
// Return the next piece of a free or sliding row, based on its velocity. ``reversal`` is the
// reverse velocity that ends a slide.
GPUSIM_FN int next_loose(int contact, real velocity, real friction, real lower, real upper, real dead, real reversal) {
    const bool rubs = friction > real(0), loose = contact <= SLIDE_DOWN;
    int next = contact;
    if ((contact == SLIDE_UP && velocity < -reversal) || (contact == SLIDE_DOWN && velocity > reversal)) next = STICK;
    // A row that slides up first sticks and then reaches the lower stop, unless the stop moves up.
    if (loose && velocity < lower - dead && !(contact == SLIDE_UP && lower < real(0))) next = AT_LOWER;
    if (loose && velocity > upper + dead && !(contact == SLIDE_DOWN && upper > real(0))) next = AT_UPPER;
    if (contact == FREE && rubs) next = STICK;
    if (contact >= SLIDE_UP && contact <= STICK && !rubs) next = FREE;
    return next;
}
GPUSIM_FN int next_held(int next, int contact, real stop_impulse, real friction, real lower, real upper, real slack, real dead) {
    const bool rubs = friction > real(0);
    if (contact == STICK && rubs) {
        if (stop_impulse > friction + slack) next = SLIDE_DOWN;
        if (stop_impulse < -friction - slack) next = SLIDE_UP;
        if (lower > dead) next = AT_LOWER;
        if (upper < -dead) next = AT_UPPER;
    }
    // For each stop, find the mode after the axis leaves the stop, and the friction impulse at which the axis leaves.
    int above = lower > real(0) ? SLIDE_UP : (lower < real(0) ? SLIDE_DOWN : STICK);
    int below = upper < real(0) ? SLIDE_DOWN : (upper > real(0) ? SLIDE_UP : STICK);
    if (!rubs) above = below = FREE;
    const real edge_above = above == SLIDE_UP ? -friction : friction;
    const real edge_below = below == SLIDE_DOWN ? friction : -friction;
    if (contact == AT_LOWER && stop_impulse < edge_above - slack) next = above;
    if (contact == AT_UPPER && stop_impulse > edge_below + slack) next = below;
    return next;
}
// Return the next mode of axis k. The piece, and the state of each clamped term, changes by at most one step.
GPUSIM_FN int adjacent_mode(const World& w, int k) {
    const int mode = w.mode()[k], contact = mode & CONTACT_BITS;
    const real velocity = w.rate_next()[k], dead = real(DEAD_BAND), slack = dead / w.response()[k];
    const real friction = w.law_friction()[k], lower = w.velocity_lower()[k], upper = w.velocity_upper()[k];
    // Prevent that a row with contacts alternates between stick and slip forever (gpusim/reference/joints/modes.py).
    const int excess = *w.switches() - CAREFUL_AFTER;
    const real fraction = real(REVERSAL_FRACTION) * real(1 << (excess < MAX_DOUBLINGS ? (excess > 0 ? excess : 0) : MAX_DOUBLINGS));
    const real reversal = touches(w) && excess >= 0 ? max_(dead, fraction * friction * w.response()[k]) : dead;
    int clamps = mode & ~CONTACT_BITS, shift = 0;
    real clamped_part = real(0);
    for (int n = first_clamp(w, k); n < end_clamp(w, k); ++n, shift += 2) {
        const real effort = w.clamped_impulse()[n] - w.clamped_slope()[n] * velocity, bound = w.clamped_bound()[n];
        const int clamp = mode >> shift & CLAMP_BITS;
        clamped_part += clamp == 0 ? effort : (clamp == CLAMP_UP ? bound : -bound);
        clamps ^= (clamp ^ next_clamp(clamp, effort, bound, slack)) << shift;
    }
    const real stop_impulse = w.solved()[w.axis_row()[k]] - (w.law_impulse()[k] - w.law_slope()[k] * velocity + clamped_part);
    const int loose = next_loose(contact, velocity, friction, lower, upper, dead, reversal);
    // If both stops are equal, the row stays at its stop, whatever the sign of the impulse.
    const int locked = contact >= AT_LOWER ? contact : AT_LOWER;
    return (lower == upper ? locked : next_held(loose, contact, stop_impulse, friction, lower, upper, slack, dead)) + clamps;
}
// Return whether axis k is at a stop, but its velocity is not the velocity of the stop. If two rows are linearly
// dependent, the velocity of one row can force the other row off its stop. After the removal of self-stress, the
// impulses do not show this conflict.
GPUSIM_FN bool off_stop(const World& w, int k) {
    const int contact = w.mode()[k] & CONTACT_BITS;
    const real lower = w.velocity_lower()[k], upper = w.velocity_upper()[k], bound = contact == AT_LOWER ? lower : upper;
    return contact >= AT_LOWER && abs_(w.rate_next()[k] - bound) > real(DEAD_BAND) && lower != upper;
}
// Return the mode after only one change. The change applies to the piece, or if the piece is equal, to the first
// clamped term that differs.
GPUSIM_FN int first_move(int mode, int target) {
    int part = CONTACT_BITS;
    if (!((mode ^ target) & part))
        for (part = CLAMP_BITS; !((mode ^ target) & part);) part <<= 2;
    return (mode & ~part) | (target & part);
}
