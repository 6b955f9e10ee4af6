// Self-stress of loops: impulses of linearly dependent rows that cancel each other
// (gpusim/reference/solve/self_stress.py).
#pragma once
#include "../joints/coupled_laws.cuh"
#include "../joints/factor.cuh"

#if !GPUSIM_WIDE
GPUSIM_PHASE void start_stress(const World& w, int) { *w.load_size() = *w.self_stress() = real(0); }
#endif
// No stage uses the memory of the rotation operators before the next curvature stage.
GPUSIM_PHASE void respond_body(const World& w, int b) { impulse_response(w, b, w.solved(), w.rotation_terms() + 18 * b); }
GPUSIM_PHASE void load_row(const World& w, int item) {
    const RowPart at = row_part(w, item);
    const int taken = w.constraint_slots()[at.block];
    const int n = w.block(), slots = w.slots(), first = at.block * n, *body = w.constraint_bodies() + at.block * slots;
    const int coupled = coupled_number(w, at.block);
    const real* law = coupled < 0 ? nullptr : coupled_block(w, coupled);
    for (int row = first + at.row; row < first + at.end; ++row) {
        real load = w.factored_gamma()[row] * w.solved()[row];
        if (law)
            for (int k = 0; k < n; ++k)
                if (first + k != row) load += law[(row - first) * n + k] * w.solved()[first + k];
        const real* j = w.jacobian() + 6 * (at.block * slots * n + row - first);
        for (int s = 0; s < taken; ++s) load += dot6(j + 6 * s * n, w.rotation_terms() + 18 * body[s]);
        w.rhs()[row] = is_swept_row(w, row) ? real(0) : load;
    }
}
GPUSIM_PHASE void weigh_stress(const World& w, int row) {
    if (is_swept_row(w, row)) return;
    const real load = w.delta()[row], stress = w.solved()[row] - load, response = w.diagonal()[row];
    raise_where(true, w.load_size(), load * load * response);
    raise_where(true, w.self_stress(), stress * stress * response);
}
GPUSIM_PHASE void drop_stress(const World& w, int row) {
    const real limit = choose(mask(*w.factor_damping() == 0.0), real(SELF_STRESS * SELF_STRESS), real(1));
    const mask drops = (*w.self_stress() > limit * *w.load_size()) & mask(!is_swept_row(w, row));
    const real before = w.solved()[row], after = choose(drops, w.delta()[row], before);
    w.solved()[row] = after;
    w.delta()[row] = after - before;
}
