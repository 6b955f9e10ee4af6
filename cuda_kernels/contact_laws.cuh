// Laws of contacts by their sockets: soft normal forces, impacts, friction (gpusim/reference/contact_laws.py, where the
// equations stand; Kosenko and others 2015). The numbers of a law are those of gpusim.ContactLaw.numbers().
#pragma once
#include "broad_phase.cuh"
#include "rows.cuh"

GPUSIM_FN const double* pair_law(const World& w, int m) {
    const int a = w.pair_shapes()[2 * m], b = w.pair_shapes()[2 * m + 1];
    const int own = find_in(w.take_start(), w.take(), a, b);
    const int row = own >= 0 ? w.take_material()[own] : -1;
    const int law = row >= 0 ? int(w.pair_materials()[6 * row + 5]) : larger(w.shape_law()[a], w.shape_law()[b]);
    return w.contact_laws() + 8 * law;
}
GPUSIM_FN bool soft_normal(const World& w, int m) { return pair_law(w, m)[0] > 0.0; }
GPUSIM_FN int friction_law(const World& w, int m) { return int(pair_law(w, m)[2]); }
GPUSIM_FN double relative_radius(const World& w, int m) {
    const double curvature = w.shape_curvature()[w.pair_shapes()[2 * m]] + w.shape_curvature()[w.pair_shapes()[2 * m + 1]];
    return curvature > 0.0 ? 1.0 / curvature : 0.0;
}
GPUSIM_FN double pair_modulus(const World& w, int m) {
    const int a = w.pair_shapes()[2 * m], b = w.pair_shapes()[2 * m + 1];
    const int own = find_in(w.take_start(), w.take(), a, b);
    const int row = own >= 0 ? w.take_material()[own] : -1;
    return row >= 0 ? w.pair_materials()[6 * row + 4] : 1.0 / (1.0 / w.shape_modulus()[a] + 1.0 / w.shape_modulus()[b]);
}
// Elastic force and its slope at a depth, N and N/m.
GPUSIM_FN void elastic_force(const World& w, int m, const double* law, double depth, double* force, double* slope) {
    const double radius = relative_radius(w, m);
    if (int(law[0]) == LAW_HERTZ) {
        const double stiffness = law[4] > 0.0 ? law[4] : 4.0 / 3.0 * pair_modulus(w, m) * square_root(radius);
        const double root = square_root(depth);
        *force = stiffness * depth * root;
        *slope = 1.5 * stiffness * root;
        return;
    }
    *force = law[4] * (GPUSIM_PI * depth * depth) * (radius - depth / 3.0);
    *slope = law[4] * GPUSIM_PI * depth * (2.0 * radius - depth);
}
// Row of a soft normal force: p = P - D u over the kick, from the depth and the speed before it.
GPUSIM_FN void soften_point(const World& w, int m, real* p, real speed) {
    const double *law = pair_law(w, m), depth = -double(p[AT_GAP]), kick = kick_time(w), before = speed;
    if (!(depth > 0.0)) {
        p[AT_BIAS] = real(NO_FORCE);
        return;
    }
    double force, slope;
    elastic_force(w, m, law, depth, &force, &slope);
    double damping = 0.0;
    if (int(law[1]) == LAW_LINEAR) damping = law[5];
    if (int(law[1]) == LAW_HUNT_CROSSLEY) damping = law[5] * force;
    const double impulse = kick * (force + 0.25 * double(h_prev(w)) * slope * before - 0.5 * damping * before);
    const double drop = larger(kick * (0.25 * w.h * slope + 0.5 * damping), double(LEAST_NUMBER));
    p[AT_GAMMA] = real(1.0 / drop);
    p[AT_BIAS] = real(-impulse / drop);
}
// Speed with which a point leaves after this substep's impact, 0 for none: design page, section 8.
GPUSIM_FN real impact_speed(const World& w, real restitution, real gap, real before, real kicked) {
    if (!(restitution > real(0)) || !(kicked < real(0))) return real(0);
    const real h = real(w.h);
    const real pull = w.papers() ? real(0) : (kicked - before) / kick_time(w);
    const real now = before + real(0.5) * pull * h_prev(w), square = now * now - real(2) * pull * gap;
    if (!(square > real(0)) || now > real(0)) return real(0);
    const real speed = square_root(square);
    return speed < real(2) * magnitude(pull) * h ? real(0) : restitution * speed - real(0.5) * pull * h;
}
// Numbers of the friction law that sweeps need.
GPUSIM_FN void aim_law(const World& w, int m, real* r) {
    const double* law = pair_law(w, m);
    r[AT_SPEED] = real(law[6]);
    double patch = law[7];
    if (int(law[2]) == LAW_CONTENSOU && !(patch > 0.0)) {
        double depth = 0.0;
        for (int k = 0; k < w.pair_points()[m]; ++k) depth = larger(depth, -double((r + FIRST_POINT + POINT_NUMBERS * k)[AT_GAP]));
        patch = square_root(relative_radius(w, m) * depth);
    }
    r[AT_PATCH] = real(patch);
}

// Coulomb's friction of one point within the circle of radius ``most``: the impulse that stops the point, or the one on
// the circle that is opposite to the velocity which it leaves. (k11, k12; k12, k22): masses, inverse: 1/determinant;
// u: velocity with impulse p.
GPUSIM_FN void coulomb(real most, const real* mass, real inverse, real u1, real u2, real* p) {
    const real k11 = mass[3], k12 = mass[4], k22 = mass[5];
    if (!(most > real(0))) {
        p[0] = p[1] = real(0);
        return;
    }
    const real s1 = p[0] - (k22 * u1 - k12 * u2) * inverse, s2 = p[1] - (k11 * u2 - k12 * u1) * inverse;
    const real held = s1 * s1 + s2 * s2;
    if (held <= most * most) {
        p[0] = s1;
        p[1] = s2;
        return;
    }
    // (K + x) p = g with |p| = most, Newton's method on 1/|p| (More and Sorensen 1983).
    const real g1 = k11 * p[0] + k12 * p[1] - u1, g2 = k12 * p[0] + k22 * p[1] - u2;
    real x = larger(square_root(g1 * g1 + g2 * g2) / most - larger(k11, k22), real(0)), q1 = s1, q2 = s2;
    for (int pass = 0; pass < FRICTION_PASSES; ++pass) {
        const real a = k11 + x, c = k22 + x, scale = real(1) / (a * c - k12 * k12);
        q1 = (c * g1 - k12 * g2) * scale;
        q2 = (a * g2 - k12 * g1) * scale;
        const real square = q1 * q1 + q2 * q2, size = square_root(square);
        const real bend = (c * q1 * q1 - real(2) * k12 * q1 * q2 + a * q2 * q2) * scale;
        x = larger(x + (size / most - real(1)) * square / bend, real(0));
    }
    const real fit = most / square_root(q1 * q1 + q2 * q2);
    p[0] = fit * q1;
    p[1] = fit * q2;
}
// -g u with g = most/max(|u|, speed), implicit in u: (1 + K g) u = free velocity.
GPUSIM_FN void regularized(real most, real speed, const real* mass, real u1, real u2, real* p) {
    const real k11 = mass[3], k12 = mass[4], k22 = mass[5];
    const real f1 = u1 - (k11 * p[0] + k12 * p[1]), f2 = u2 - (k12 * p[0] + k22 * p[1]);
    const real size = square_root(u1 * u1 + u2 * u2), g = most / larger(size, speed);
    const real a = real(1) + k11 * g, b = k12 * g, c = real(1) + k22 * g, scale = real(1) / (a * c - b * b);
    p[0] = -g * ((c * f1 - b * f2) * scale);
    p[1] = -g * ((a * f2 - b * f1) * scale);
}
// Factors f and t of a patch that slides at ``slide`` and spins at ``spin`` (speed of its rim); gpusim/contact/patch.py.
GPUSIM_FN void patch_factors(const World& w, int pressure, real slide, real spin, real* force, real* torque) {
    const double *table = w.patch_friction() + 2 * PATCH_NODES * pressure, s = double(slide) / (double(slide) + double(spin));
    const double place = s * (PATCH_NODES - 1);
    const int node = clamped(int(place), 0, PATCH_NODES - 2);
    const double part = place - node, *low = table + 2 * node;
    *force = real(low[0] + part * (low[2] - low[0]));
    *torque = real(low[1] + part * (low[3] - low[1]));
}
