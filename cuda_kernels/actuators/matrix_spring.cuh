// Springs and dampers between the six coordinates of a joint (gpusim/actuators/matrix_spring.py).
#pragma once
#include "../actuate.cuh"

#if GPUSIM_COUPLED
GPUSIM_SHARED void matrix_spring_evaluate_coupled(const World& w, int n, const CoupledLaw& law) {
    const double k[21] = {
        w.matrix_spring_k00(n), w.matrix_spring_k01(n), w.matrix_spring_k02(n), w.matrix_spring_k03(n), w.matrix_spring_k04(n),
        w.matrix_spring_k05(n), w.matrix_spring_k11(n), w.matrix_spring_k12(n), w.matrix_spring_k13(n), w.matrix_spring_k14(n),
        w.matrix_spring_k15(n), w.matrix_spring_k22(n), w.matrix_spring_k23(n), w.matrix_spring_k24(n), w.matrix_spring_k25(n),
        w.matrix_spring_k33(n), w.matrix_spring_k34(n), w.matrix_spring_k35(n), w.matrix_spring_k44(n), w.matrix_spring_k45(n),
        w.matrix_spring_k55(n)};
    const double c[21] = {
        w.matrix_spring_c00(n), w.matrix_spring_c01(n), w.matrix_spring_c02(n), w.matrix_spring_c03(n), w.matrix_spring_c04(n),
        w.matrix_spring_c05(n), w.matrix_spring_c11(n), w.matrix_spring_c12(n), w.matrix_spring_c13(n), w.matrix_spring_c14(n),
        w.matrix_spring_c15(n), w.matrix_spring_c22(n), w.matrix_spring_c23(n), w.matrix_spring_c24(n), w.matrix_spring_c25(n),
        w.matrix_spring_c33(n), w.matrix_spring_c34(n), w.matrix_spring_c35(n), w.matrix_spring_c44(n), w.matrix_spring_c45(n),
        w.matrix_spring_c55(n)};
    for (int r = 0; r < law.count; ++r) {
        law.impulse[r] = 0.0;
        for (int s = 0; s < law.count; ++s) {
            const int i = min_(r, s), j = max_(r, s), entry = i * 6 - i * (i + 1) / 2 + j, axis = law.axis[s];
            double impulse, slope;
            spring_law(w, axis, k[entry], c[entry], w.axis_position()[axis], &impulse, &slope);
            law.impulse[r] += impulse;
            law.slope[r * law.width + s] = slope;
        }
    }
}
#endif
