// Stage prepare, second part: geometric stiffness of light bodies under tension
// (gpusim/reference/joints/geometric_stiffness.py). I_eff = I + 1.05 s h^2/4 K, with K = sum of [(r.F) 1 - sym(r F^T)] over
// sides with r.F > 0. The share s grows with the growth per step. K rises at once and fades, so that the inertia does
// not oscillate.
#pragma once
#include "rows.cuh"

#define JACOBI_SWEEPS 8

// Remove the negative eigenvalues of a symmetric matrix, which would reduce the inertia where F crosses r. The method
// is cyclic Jacobi rotations (Golub and Van Loan 8.5) with a fixed number of sweeps.
GPUSIM_FN void make_positive(real* m) {
    real v[9] = {real(1), real(0), real(0), real(0), real(1), real(0), real(0), real(0), real(1)};
    for (int sweep = 0; sweep < JACOBI_SWEEPS; ++sweep)
        for (int p = 0; p < 2; ++p)
            for (int q = p + 1; q < 3; ++q) {
                const real off = m[3 * p + q];
                const mask turns = !(off == real(0));
                if (!any(turns)) continue;
                const real theta = (m[4 * q] - m[4 * p]) / (real(2) * off);
                const real root = sqrt_(theta * theta + real(1));
                const real t = choose(theta >= real(0), real(1) / (theta + root), real(-1) / (root - theta));
                const real c = real(1) / sqrt_(t * t + real(1)), s = t * c;
                for (int k = 0; k < 3; ++k) {
                    const real a = m[3 * k + p], b = m[3 * k + q];
                    m[3 * k + p] = choose(turns, c * a - s * b, a);
                    m[3 * k + q] = choose(turns, s * a + c * b, b);
                }
                for (int k = 0; k < 3; ++k) {
                    const real a = m[3 * p + k], b = m[3 * q + k], e = v[3 * k + p], f = v[3 * k + q];
                    m[3 * p + k] = choose(turns, c * a - s * b, a);
                    m[3 * q + k] = choose(turns, s * a + c * b, b);
                    v[3 * k + p] = choose(turns, c * e - s * f, e);
                    v[3 * k + q] = choose(turns, s * e + c * f, f);
                }
            }
    const real value[3] = {max_(m[0], real(0)), max_(m[4], real(0)), max_(m[8], real(0))};
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            real sum = real(0);
            for (int k = 0; k < 3; ++k) sum += v[3 * i + k] * value[k] * v[3 * j + k];
            m[3 * i + j] = sum;
        }
}

// Compute K of body b, world axes, and its growth. K of the last kick applies if it exceeds the held one, which
// otherwise fades. Return false if the body needs none.
GPUSIM_FN mask find_stiffness(const World& w, int b, real* total, real& growth) {
    for (int k = 0; k < 9; ++k) total[k] = real(0);
    const real kick = real(*w.kick_before());
    const mask kicked = kick > real(0);
    if (!w.dynamic()[b] || !any(kicked)) return false;
    const int block = w.block();
    real loaded = real(0);
    for (int n = w.body_side_start()[b]; n < w.body_side_start()[b + 1]; ++n) {
        const int side = w.body_side()[n];
        const real* j = w.jacobian() + 6 * side * block;
        const stored* p = w.impulse() + side / w.slots() * block;
        real force[3] = {}, arm[3], own[3];
        for (int r = 0; r < block; ++r)
            for (int k = 0; k < 3; ++k) force[k] += real(p[r]) * j[6 * r + k];
        for (int k = 0; k < 3; ++k) force[k] = force[k] / kick;
        copy3(w.side_arm() + 3 * side, own);
        turn3(w.rotation() + 9 * b, own, arm);
        const real pull = dot3(arm, force);
        const mask pulls = pull > real(0);
        if (!any(pulls)) continue;
        loaded = choose(pulls, loaded + real(1), loaded);
        for (int r = 0; r < 3; ++r)
            for (int c = 0; c < 3; ++c) {
                const real own = (r == c ? pull : real(0)) - real(0.5) * (arm[r] * force[c] + arm[c] * force[r]);
                total[3 * r + c] = choose(pulls, total[3 * r + c] + own, total[3 * r + c]);
            }
    }
    const mask taut = loaded > real(1.5);
    for (int k = 0; k < 9; ++k) total[k] = choose(taut, total[k], real(0));
    real held[9], turn[9], turned[9], last[9];
    for (int k = 0; k < 9; ++k) held[k] = real(w.tension_stiffness()[9 * b + k]);
    const mask fades = held[0] + held[4] + held[8] > total[0] + total[4] + total[8];
    if (any(fades)) {
        for (int k = 0; k < 9; ++k) turn[k] = real(w.rotation()[9 * b + k]);
        product33(turn, held, turned);
        product33_transposed(turned, turn, last);
        for (int k = 0; k < 9; ++k) total[k] = choose(fades, last[k] + real(STIFFNESS_FADE) * (total[k] - last[k]), total[k]);
    }
    // The trace of I^-1 K is between the greatest square of a frequency and three times that.
    real trace = real(0);
    const real* inverse = w.inertia_inverse() + 9 * b;
    for (int k = 0; k < 3; ++k) trace += dot3(inverse + 3 * k, total + 3 * k);
    growth = real(0.5) * real(0.25 * w.h * w.h) * trace;
    return kicked & (growth > real(STIFFNESS_THRESHOLD));
}

// Keep K for the next step, body axes.
GPUSIM_FN void keep_stiffness(const World& w, int b, mask stiff, const real* total) {
    real back[9], turned[9], own[9] = {};
    if (any(stiff)) {
        for (int r = 0; r < 3; ++r)
            for (int c = 0; c < 3; ++c) back[3 * r + c] = real(w.rotation()[9 * b + 3 * c + r]);
        product33(back, total, turned);
        product33_transposed(turned, back, own);
    }
    for (int k = 0; k < 9; ++k) w.tension_stiffness()[9 * b + k] = stored(choose(stiff, own[k], real(0)));
}

// Set the inverse inertia of body b for impulses.
GPUSIM_PHASE void stiffen_body(const World& w, int b) {
    real total[9], turn[9], turned[9], inertia[9], inverse[9], growth = real(0);
    const mask stiff = find_stiffness(w, b, total, growth);
    keep_stiffness(w, b, stiff, total);
    if (!any(stiff)) return;
    const real quarter = real(0.25 * w.h * w.h);
    const real share = min_((growth - real(STIFFNESS_THRESHOLD)) / real(STIFFNESS_RAMP), real(1));
    make_positive(total);
    for (int k = 0; k < 9; ++k) turn[k] = real(w.rotation()[9 * b + k]);
    product33(turn, w.inertia() + 9 * b, turned);
    product33_transposed(turned, turn, inertia);
    for (int k = 0; k < 9; ++k) inertia[k] += real(STIFFNESS_FACTOR) * quarter * (share * total[k]);
    inverse33(inertia, inverse);
    real* out = w.inertia_inverse_effective() + 9 * b;
    for (int k = 0; k < 9; ++k) out[k] = choose(stiff, inverse[k], out[k]);
}
