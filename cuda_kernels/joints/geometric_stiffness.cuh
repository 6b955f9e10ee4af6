// Stage prepare, second part: geometric stiffness of light bodies under tension (equations:
// gpusim/reference/joints/geometric_stiffness.py).
#pragma once
#include "rows.cuh"

// Compute K of body b in world axes, and the growth g (geometric_stiffness.py). K increases at once, but decreases over
// several steps. Return false if the body needs no geometric stiffness.
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
        real force[3] = {}, arm[3], local_arm[3], row[3];
        for (int r = 0; r < block; ++r) {
            read_numbers<3>(j + 6 * r, row);
            for (int k = 0; k < 3; ++k) force[k] += real(p[r]) * row[k];
        }
        for (int k = 0; k < 3; ++k) force[k] = force[k] / kick;
        copy3(w.side_arm() + 3 * side, local_arm);
        rotate3(w.rotation() + 9 * b, local_arm, arm);
        const real pull = dot3(arm, force), square = dot3(arm, arm);
        const mask pulls = (pull > real(0)) & (square > real(0));
        if (!any(pulls)) continue;
        loaded = choose(pulls, loaded + real(1), loaded);
        const real along = pull / square;
        for (int r = 0; r < 3; ++r)
            for (int c = 0; c < 3; ++c) {
                const real stiffness = (r == c ? pull : real(0)) - along * arm[r] * arm[c];
                total[3 * r + c] = choose(pulls, total[3 * r + c] + stiffness, total[3 * r + c]);
            }
    }
    const mask taut = loaded > real(1.5);
    for (int k = 0; k < 9; ++k) total[k] = choose(taut, total[k], real(0));
    real previous[9], rotation[9], product[9], last[9];
    for (int k = 0; k < 9; ++k) previous[k] = real(w.tension_stiffness()[9 * b + k]);
    const mask fades = previous[0] + previous[4] + previous[8] > total[0] + total[4] + total[8];
    if (any(fades)) {
        for (int k = 0; k < 9; ++k) rotation[k] = real(w.rotation()[9 * b + k]);
        product33(rotation, previous, product);
        product33_transposed(product, rotation, last);
        for (int k = 0; k < 9; ++k) total[k] = choose(fades, last[k] + real(STIFFNESS_FADE) * (total[k] - last[k]), total[k]);
    }
    // Let w be the maximum squared frequency. The trace of I^-1 K is between w and 3 w.
    real trace = real(0);
    const real* inverse = w.inertia_inverse() + 9 * b;
    for (int k = 0; k < 3; ++k) trace += dot3(inverse + 3 * k, total + 3 * k);
    growth = real(0.5) * real(0.25 * w.h * w.h) * trace;
    return kicked & (growth > real(STIFFNESS_THRESHOLD));
}

// Store K for the next step in body axes.
GPUSIM_FN void keep_stiffness(const World& w, int b, mask stiff, const real* total) {
    real transposed[9], product[9], in_body[9] = {};
    if (any(stiff)) {
        for (int r = 0; r < 3; ++r)
            for (int c = 0; c < 3; ++c) transposed[3 * r + c] = real(w.rotation()[9 * b + 3 * c + r]);
        product33(transposed, total, product);
        product33_transposed(product, transposed, in_body);
    }
    for (int k = 0; k < 9; ++k) w.tension_stiffness()[9 * b + k] = stored(choose(stiff, in_body[k], real(0)));
}

// Set the inverse inertia that the solver uses for body b.
GPUSIM_PHASE void stiffen_body(const World& w, int b) {
    real total[9], rotation[9], product[9], inertia[9], inverse[9], growth = real(0);
    const mask stiff = find_stiffness(w, b, total, growth);
    keep_stiffness(w, b, stiff, total);
    if (!any(stiff)) return;
    const real quarter = real(0.25 * w.h * w.h);
    const real ramp = min_((growth - real(STIFFNESS_THRESHOLD)) / real(STIFFNESS_RAMP), real(1));
    for (int k = 0; k < 9; ++k) rotation[k] = real(w.rotation()[9 * b + k]);
    product33(rotation, w.inertia() + 9 * b, product);
    product33_transposed(product, rotation, inertia);
    for (int k = 0; k < 9; ++k) inertia[k] += real(STIFFNESS_FACTOR) * quarter * (ramp * total[k]);
    inverse33(inertia, inverse);
    real* out = w.inertia_inverse_effective() + 9 * b;
    for (int k = 0; k < 9; ++k) out[k] = choose(stiff, inverse[k], out[k]);
}
