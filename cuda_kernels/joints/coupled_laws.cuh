// Laws that couple several axes, in the form of compliant rows u + G p = t, with G = D^-1, t = G P
// (gpusim/reference/joints/coupled_laws.py).
#pragma once
#include "factor.cuh"
#include "laws.cuh"

// Compute compliances and targets of law i.
GPUSIM_FN void invert_coupled(const World& w, int i) {
    const CoupledLaw law = coupled_law(w, i);
    const int n = w.block();
    real *gamma = w.coupled_gamma() + i * n * n, *target = w.coupled_target() + i * n;
    for (int k = 0; k < n * n; ++k) gamma[k] = real(0);
    for (int r = 0; r < law.count; ++r)
        for (int c = 0; c < law.count; ++c) gamma[r * n + c] = real(law.slope[r * n + c]);
    invert_block(gamma, law.count, n);
    for (int r = 0; r < n; ++r) {
        real sum = real(0);
        for (int c = 0; c < law.count; ++c) sum += gamma[r * n + c] * real(law.impulse[c]);
        target[r] = sum;
    }
}
// Direct solver: set the diagonal compliances and the targets of the rows of law i.
GPUSIM_FN void fill_coupled(const World& w, int i) {
    const int n = w.block(), first = w.coupled_constraint()[i] * n;
    for (int r = 0; r < n; ++r) {
        w.gamma()[first + r] = w.coupled_gamma()[(i * n + r) * n + r];
        w.target()[first + r] = w.coupled_target()[i * n + r];
    }
}
GPUSIM_PHASE void start_coupled(const World& w, int i) {
    if (!is_swept_row(w, w.coupled_constraint()[i] * w.block())) fill_coupled(w, i);
}
GPUSIM_PHASE void refit_coupled(const World& w, int i) {
    const int n = w.block(), first = w.coupled_constraint()[i] * n;
    if (is_swept_row(w, first)) return;
    fill_coupled(w, i);
    for (int row = first; row < first + n; ++row)
        if (abs_(w.gamma()[row] - w.factored_gamma()[row]) > real(STALE) * w.factored_gamma()[row]) set_flag(w.stale());
}
