// Contact laws: soft normal forces, impacts and friction (equations: gpusim/reference/contacts/contact_laws.py).
// gpusim.ContactLaw.numbers() returns the parameters of a law.
#pragma once
#include "broad_phase.cuh"
#include "../math/lanes.cuh"
#include "../joints/rows.cuh"

// Return the row of the material that the model defines for this pair, or -1.
GPUSIM_FN int separate_material_row(const World& w, int m) {
    const int entry = find_in_list(w.include_start(), w.include(), w.pair_shapes()[2 * m], w.pair_shapes()[2 * m + 1]);
    return entry >= 0 ? w.include_material()[entry] : -1;
}
// Return E* and the law of the material that the model defines for this pair, or null.
GPUSIM_FN const double* separate_material(const World& w, int m) {
    const int row = separate_material_row(w, m);
    return row >= 0 ? in_global(w.pair_materials() + 2 * row) : nullptr;
}
GPUSIM_FN const double* pair_law(const World& w, int m) {
    const double* material = separate_material(w, m);
    const int *shapes = w.pair_shapes() + 2 * m, *laws = w.shape_law();
    return w.contact_laws()
         + LAW_SIZE * (material ? int(in_global(material)[1]) : max_(laws[shapes[0]], laws[shapes[1]]));
}
GPUSIM_FN double relative_radius(const World& w, int m) {
    const double curvature = w.shape_curvature()[w.pair_shapes()[2 * m]] + w.shape_curvature()[w.pair_shapes()[2 * m + 1]];
    return curvature > 0.0 ? 1.0 / curvature : 0.0;
}
GPUSIM_FN double pair_modulus(const World& w, int m) {
    const double* material = separate_material(w, m);
    const int *shapes = w.pair_shapes() + 2 * m;
    return material ? in_global(material)[0]
                    : 1.0 / (1.0 / w.shape_modulus()[shapes[0]] + 1.0 / w.shape_modulus()[shapes[1]]);
}
GPUSIM_FN void elastic_force(const World& w, int m, const double* law, double depth, double* force, double* slope) {
    if (int(law[0]) == LAW_SPRING) {
        *force = law[4] * depth;
        *slope = law[4];
        return;
    }
    const double radius = relative_radius(w, m);
    if (int(law[0]) == LAW_HERTZ) {
        const double stiffness = law[4] > 0.0 ? law[4] : 4.0 / 3.0 * pair_modulus(w, m) * sqrt_(radius);
        const double root = sqrt_(depth);
        *force = stiffness * depth * root;
        *slope = 1.5 * stiffness * root;
        return;
    }
    *force = law[4] * (GPUSIM_PI * depth * depth) * (radius - depth / 3.0);
    *slope = law[4] * GPUSIM_PI * depth * (2.0 * radius - depth);
}
// Set compliance and bias of a soft normal force. ``speed`` is the normal speed before the kick.
GPUSIM_FN void soften_point(const World& w, int m, Lane p, real speed) {
    const double *law = pair_law(w, m), depth = -double(p[AT_GAP]), kick = kick_time(w), before = speed;
    p[AT_PUSH] = -real(NO_FORCE);
    p[AT_CARRIED] = real(0);
    p[AT_IMPACT] = real(0);
    if (!(depth > 0.0)) {
        p[AT_GAMMA] = real(0);
        p[AT_BIAS] = real(NO_FORCE);
        return;
    }
    double force, slope;
    elastic_force(w, m, law, depth, &force, &slope);
    double damping = 0.0;
    if (int(law[1]) == LAW_LINEAR) damping = law[5];
    if (int(law[1]) == LAW_HUNT_CROSSLEY) damping = law[5] * force;
    double part = 0.25;
    if (int(law[0]) == LAW_SPRING) {
        const double squared_phase = w.h * w.h * slope * double(p[AT_MASS]);
        damping += SPRING_DAMPING * w.h * slope * (squared_phase / (1.0 + squared_phase));
        if (squared_phase > 4.0) part = 0.5 - 1.0 / squared_phase;
    }
    const double impulse = kick * (force + part * double(h_prev(w)) * slope * before - 0.5 * damping * before);
    const double drop = max_(kick * (part * w.h * slope + 0.5 * damping), double(MIN_NUMBER));
    p[AT_GAMMA] = real(1.0 / drop);
    p[AT_BIAS] = real(-impulse / drop);
}
template <class N> GPUSIM_FN N impact_speed(const World& w, N restitution, N gap, N before, N kicked) {
    const N none = Every<N>::of(real(0));
    if (!any((restitution > real(0)) & (kicked < real(0)))) return none;
    const real h = real(w.h);
    const N acceleration = w.semi_implicit() ? none : (kicked - before) / kick_time(w);
    const N now = before + real(0.5) * acceleration * h_prev(w), square = now * now - real(2) * acceleration * gap;
    const N speed = sqrt_(max_(square, none));
    const auto hits = (restitution > real(0)) & (kicked < real(0)) & (square > real(0)) & !(now > real(0));
    return choose(hits & !(speed < real(2) * abs_(acceleration) * h),
                  restitution * speed - real(0.5) * acceleration * h, none);
}
// Set the parameters of the friction law for the sweeps.
GPUSIM_FN void set_law_bias(const World& w, int m, Lane r) {
    const double* law = pair_law(w, m);
    r[AT_SPEED] = real(law[6]);
    double patch = law[7];
    if (int(law[2]) == LAW_CONTENSOU && !(patch > 0.0)) {
        double depth = 0.0;
        for (int k = 0; k < w.pair_points()[m]; ++k) depth = max_(depth, -double(r[FIRST_POINT + POINT_SIZE * k + AT_GAP]));
        patch = sqrt_(relative_radius(w, m) * depth);
    }
    r[AT_PATCH] = real(patch);
}

// Solve Coulomb friction of a point, limited to a circle of radius ``limit``. mass: entries k11, k12, k22 of the
// response. inverse: 1/determinant. u: velocity, including the effect of the impulse p.
template <class N> GPUSIM_FN void coulomb(N limit, const N* mass, N inverse, N u1, N u2, N* p) {
    const N k11 = mass[0], k12 = mass[1], k22 = mass[2], none = Every<N>::of(real(0));
    const N s1 = p[0] - (k22 * u1 - k12 * u2) * inverse, s2 = p[1] - (k11 * u2 - k12 * u1) * inverse;
    const auto loaded = limit > real(0);
    const auto slides = loaded & !(s1 * s1 + s2 * s2 <= limit * limit);
    N q1 = s1, q2 = s2;
    if (any(slides)) {
        // Solve (K + x) p = g with |p| = limit, by Newton's method on 1/|p| (More and Sorensen 1983).
        const N g1 = k11 * p[0] + k12 * p[1] - u1, g2 = k12 * p[0] + k22 * p[1] - u2;
        N x = max_(N(sqrt_(g1 * g1 + g2 * g2) / limit - real(0.5) * (k11 + k22)), none);
        for (int pass = 0; pass < FRICTION_PASSES; ++pass) {
            // p = r/det(K + x). The code uses r instead of p, to avoid a division by the determinant.
            const N a = k11 + x, c = k22 + x, r1 = c * g1 - k12 * g2, r2 = a * g2 - k12 * g1;
            const N square = r1 * r1 + r2 * r2, curvature = c * r1 * r1 - real(2) * k12 * r1 * r2 + a * r2 * r2;
            x = max_(N(x + (sqrt_(square) - limit * (a * c - k12 * k12)) * square / (curvature * limit)), none);
        }
        // The next lines use only the direction of the solution.
        const N t1 = (k22 + x) * g1 - k12 * g2, t2 = (k11 + x) * g2 - k12 * g1;
        const N scale = limit / sqrt_(t1 * t1 + t2 * t2);
        q1 = choose(slides, N(scale * t1), s1);
        q2 = choose(slides, N(scale * t2), s2);
    }
    p[0] = choose(loaded, q1, none);
    p[1] = choose(loaded, q2, none);
}
// Apply the impulse -g u with g = limit/max(|u|, speed), implicitly in u: (1 + K g) u = free velocity.
template <class N> GPUSIM_FN void regularized(N limit, N speed, const N* mass, N u1, N u2, N* p) {
    const N k11 = mass[0], k12 = mass[1], k22 = mass[2];
    const N f1 = u1 - (k11 * p[0] + k12 * p[1]), f2 = u2 - (k12 * p[0] + k22 * p[1]);
    const N size = sqrt_(u1 * u1 + u2 * u2), g = limit / max_(size, speed);
    const N a = real(1) + k11 * g, b = k12 * g, c = real(1) + k22 * g, scale = real(1) / (a * c - b * b);
    p[0] = -g * ((c * f1 - b * f2) * scale);
    p[1] = -g * ((a * f2 - b * f1) * scale);
}
// Interpolate the factors f and t of a patch (gpusim/contact/patch.py). ``spin`` is the speed of the rim due to spin.
GPUSIM_FN void patch_factors(const World& w, int pressure, real slide, real spin, real* force, real* torque) {
    const double *table = w.patch_friction() + 2 * PATCH_NODES * pressure, s = double(slide) / (double(slide) + double(spin));
    const double position = s * (PATCH_NODES - 1);
    const int node = clamped(int(position), 0, PATCH_NODES - 2);
    const double fraction = position - node, *low = table + 2 * node;
    *force = real(low[0] + fraction * (low[2] - low[0]));
    *torque = real(low[1] + fraction * (low[3] - low[1]));
}
