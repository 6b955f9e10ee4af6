// Sweeps over manifolds: impulses of their points in turn, within the relative twist of the two bodies, so that both
// bodies are read and written once (gpusim/reference/contact_solve.py). The same sweeps serve the stages solve and settle.
#pragma once
#include "contact_rows.cuh"

struct Sweep {
    real twist[WIDE];   // relative, at the middle of the manifold; 6 numbers, filled up with zeros on a CPU
    real wrench[WIDE];  // sum of what was added, about the middle
    real most;          // greatest change of an impulse
};
GPUSIM_FN void apply(const real* r, const real* wrench, Sweep& s) {
    real moved[6];
    respond(r, wrench, moved);
    for (int k = 0; k < 6; ++k) {
        s.twist[k] += moved[k];
        s.wrench[k] += wrench[k];
    }
}
GPUSIM_FN void note_change(Sweep& s, real change) {
    if (!(magnitude(change) <= s.most)) s.most = magnitude(change);
}
// Normal impulse of a point, then its friction with what that does to the tangents.
GPUSIM_FN void sweep_point(const real* r, real* p, const real* rows, int friction, Sweep& s) {
    real u[4];
    rows_velocity(rows, s.twist, u);
    const real *mass = p + AT_MASS, *bias = p + AT_BIAS, old = p[AT_IMPULSE];
    const real now = larger(old - (u[0] + bias[0] + p[AT_GAMMA] * old) * p[AT_SOLVE], real(0));
    real change[3] = {now - old, real(0), real(0)}, rub[2] = {p[AT_IMPULSE + 1], p[AT_IMPULSE + 2]};
    const real u1 = u[1] + bias[1] + mass[1] * change[0], u2 = u[2] + bias[2] + mass[2] * change[0];
    const real load = now * p[AT_SOLVE + 2];
    if (friction == LAW_COULOMB) coulomb(r[AT_FRICTION] * load, mass, p[AT_SOLVE + 1], u1, u2, rub);
    else if (friction == LAW_REGULARIZED) regularized(r[AT_FRICTION] * load, r[AT_SPEED], mass, u1, u2, rub);
    change[1] = rub[0] - p[AT_IMPULSE + 1];
    change[2] = rub[1] - p[AT_IMPULSE + 2];
    p[AT_IMPULSE] = now;
    p[AT_IMPULSE + 1] = rub[0];
    p[AT_IMPULSE + 2] = rub[1];
    rows_motion(rows, change, s.twist);
    for (int d = 0; d < 3; ++d) {
        p[AT_STEP + d] += change[d];
        note_change(s, change[d]);
    }
}
// Wrench of all that a sweep changed at a point.
GPUSIM_FN void add_wrench(const real* p, const real* rows, Sweep& s) {
    for (int c = 0; c < 6; ++c)
        s.wrench[c] += rows[4 * c] * p[AT_STEP] + rows[4 * c + 1] * p[AT_STEP + 1] + rows[4 * c + 2] * p[AT_STEP + 2];
}
GPUSIM_FN real total_normal(real* r, int points) {
    real sum = real(0);
    for (int k = 0; k < points; ++k) sum += point_record(r, k)[AT_IMPULSE];
    return sum;
}
// Response of the relative rate along an axis to a torque about it.
GPUSIM_FN real turn_response(const real* r, const real* axis) {
    real sum = real(0);
    for (int i = 0; i < 3; ++i) sum += axis[i] * dot3(r + AT_RESPONSE + 6 * (3 + i) + 3, axis);
    return sum;
}
GPUSIM_FN void push_torque(const real* r, const real* axis, real change, Sweep& s) {
    const real wrench[6] = {real(0), real(0), real(0), axis[0] * change, axis[1] * change, axis[2] * change};
    apply(r, wrench, s);
    note_change(s, change);
}
// Spinning friction about the normal, rolling friction about the tangents within a circle.
GPUSIM_FN void sweep_torques(real* r, int points, Sweep& s) {
    const real load = total_normal(r, points);
    if (r[AT_SPINNING] > real(0)) {
        const real most = r[AT_SPINNING] * load, *n = r + AT_FRAME;
        const real now = clamped(r[AT_TORQUE] - dot3(n, s.twist + 3) / turn_response(r, n), -most, most);
        const real change = now - r[AT_TORQUE];
        r[AT_TORQUE] = now;
        push_torque(r, n, change, s);
    }
    if (!(r[AT_ROLLING] > real(0))) return;
    real now[2], size = real(0);
    const real most = r[AT_ROLLING] * load;
    const real stiff = larger(turn_response(r, r + AT_FRAME + 3), turn_response(r, r + AT_FRAME + 6));
    for (int k = 0; k < 2; ++k) {
        now[k] = r[AT_TORQUE + 1 + k] - dot3(r + AT_FRAME + 3 + 3 * k, s.twist + 3) / stiff;
        size += now[k] * now[k];
    }
    const real fit = size > most * most ? most / square_root(size) : real(1);
    for (int k = 0; k < 2; ++k) {
        const real change = fit * now[k] - r[AT_TORQUE + 1 + k];
        r[AT_TORQUE + 1 + k] = fit * now[k];
        push_torque(r, r + AT_FRAME + 3 + 3 * k, change, s);
    }
}
// Sliding and spinning of one patch (Contensou): both rub by secants -g u of the law, implicit in their velocities.
GPUSIM_FN void sweep_patch(const World& w, int m, real* r, int points, Sweep& s) {
    const real load = r[AT_FRICTION] * total_normal(r, points), patch = r[AT_PATCH];
    const int pressure = int(pair_law(w, m)[3]);
    const real *n = r + AT_FRAME, *t = r + AT_FRAME + 3;
    const real u1 = dot3(t, s.twist), u2 = dot3(t + 3, s.twist), spin = dot3(n, s.twist + 3);
    const real slide = square_root(u1 * u1 + u2 * u2), rim = patch * magnitude(spin), both = slide + rim;
    real force, torque;
    patch_factors(w, pressure, both > real(0) ? slide : real(1), both > real(0) ? rim : real(0), &force, &torque);
    // Below this speed the patch sticks as if it were at it.
    const real least = real(PATCH_STICK);
    const real g = load * force / larger(larger(slide, least * force), real(LEAST_NUMBER));
    const real g_spin = load * patch * patch * torque / larger(larger(rim, least * torque), real(LEAST_NUMBER));
    const real k = larger(dot3(t, r + AT_RESPONSE) * t[0] + dot3(t, r + AT_RESPONSE + 6) * t[1] + dot3(t, r + AT_RESPONSE + 12) * t[2], real(LEAST_NUMBER));
    const real k_spin = turn_response(r, n);
    const real now[3] = {-g * (u1 - k * r[AT_SHEAR]) / (real(1) + k * g), -g * (u2 - k * r[AT_SHEAR + 1]) / (real(1) + k * g),
                         -g_spin * (spin - k_spin * r[AT_TORQUE]) / (real(1) + k_spin * g_spin)};
    real wrench[6];
    const real change[3] = {now[0] - r[AT_SHEAR], now[1] - r[AT_SHEAR + 1], now[2] - r[AT_TORQUE]};
    for (int j = 0; j < 3; ++j) {
        wrench[j] = t[j] * change[0] + t[3 + j] * change[1];
        wrench[3 + j] = n[j] * change[2];
        note_change(s, change[j]);
    }
    r[AT_SHEAR] = now[0];
    r[AT_SHEAR + 1] = now[1];
    r[AT_TORQUE] = now[2];
    apply(r, wrench, s);
}
// All points of manifold m in turn, then what acts on the patch as a whole; the wrench stays in ``s``.
GPUSIM_SHARED void sweep_points(const World& w, int m, real* r, Sweep& s) {
    const int points = record_points(r), friction = int(r[AT_LAW]), passes = int(r[AT_PASSES]);
    for (int k = 0; k < points; ++k) clear_numbers(point_record(r, k) + AT_STEP, 3);
    POINT_ROWS(rows, w, r, points);
    for (int pass = 0; pass < passes; ++pass)
        for (int k = 0; k < points; ++k) sweep_point(r, point_record(r, k), rows + POINT_ROW_NUMBERS * k, friction, s);
    for (int k = 0; k < points; ++k) add_wrench(point_record(r, k), rows + POINT_ROW_NUMBERS * k, s);
    if (friction == LAW_CONTENSOU) sweep_patch(w, m, r, points, s);
    else if (r[AT_SPINNING] > real(0) || r[AT_ROLLING] > real(0)) sweep_torques(r, points, s);
}
GPUSIM_FN void start_sweep(const real* r, const real* velocity, Sweep& s) {
    for (int k = 0; k < WIDE; ++k) s.twist[k] = s.wrench[k] = real(0);
    relative_twist(r, velocity, s.twist);
    s.most = real(0);
}
// What a wrench does to both bodies; those of an overflow manifold leave it for the sum over each body.
GPUSIM_FN void move_sides(const World& w, int m, const real* r, bool shared, const real* wrench, real* velocity) {
    for (int side = 0; side < 2; ++side) {
        const int b = record_body(r, side);
        if (!w.dynamic()[b] && !shared) continue;
        real moved[6];
        side_motion(w, r, side, wrench, moved);
        for (int k = 0; k < 6; ++k) {
            if (shared) w.part_change()[6 * (2 * m + side) + k] = moved[k];
            else velocity[6 * b + k] += moved[k];
        }
    }
}
// Nonsmooth nonlinear conjugate gradients over the sweeps (Silcowitz-Hansen, Niebe and Erleben 2010): what a sweep changes
// is a gradient, and the course of the sweeps so far is gone again by the share beta = |change|^2/|change before|^2, unless
// the changes grow. Squares are weighted with the masses, so that they are energies.
GPUSIM_FN void note_square(const World& w, const real* r) {
    real sum = real(0);
    for (int k = 0; k < record_points(r); ++k) {
        const real* p = r + FIRST_POINT + POINT_NUMBERS * k;
        sum += p[AT_MASS] * dot3(p + AT_STEP, p + AT_STEP);
    }
    w.sweep_square()[(r - w.manifold()) / RECORD_NUMBERS] = sum;
}
GPUSIM_PHASE void sum_squares(const World& w, int part) {
    const int count = *w.touching(), size = part_size(count), last = smaller(count, (part + 1) * size);
    double sum = 0.0;
    for (int place = part * size; place < last; ++place) sum += double(w.sweep_square()[place]);
    w.square_sum()[part] = sum;
}
GPUSIM_PHASE void choose_share(const World& w, int) {
    double sum = 0.0;
    for (int part = 0; part < PARTS; ++part) sum += w.square_sum()[part];
    const double before = *w.square_before();
    *w.course_share() = sum < before ? real(sum / before) : real(0);
    *w.square_before() = sum;
}
// Item: a place for a record.
GPUSIM_PHASE void go_on_pair(const World& w, int place) {
    if (place >= *w.touching()) return;
    const real share = *w.course_share();
    real* r = record_at(w, place);
    for (int k = 0; k < record_points(r); ++k) {
        real* p = point_record(r, k);
        for (int j = 0; j < 3; ++j) {
            const real course = share * p[AT_COURSE + j];
            p[AT_IMPULSE + j] += course;
            p[AT_COURSE + j] = share > real(0) ? course + p[AT_STEP + j] : real(0);
        }
    }
}
GPUSIM_PHASE void go_on_body(const World& w, int i) {
    const real share = *w.course_share(), course = share * w.twist_course()[i], step = w.twist()[i] - w.twist_sweep()[i];
    w.twist()[i] += course;
    w.twist_course()[i] = share > real(0) ? course + step : real(0);
    w.twist_sweep()[i] = w.twist()[i];
}
GPUSIM_PHASE void go_on_row(const World& w, int row) {
    const real share = *w.course_share(), course = share * w.row_course()[row], step = w.solved()[row] - w.row_sweep()[row];
    w.solved()[row] += course;
    w.row_course()[row] = share > real(0) ? course + step : real(0);
    w.row_sweep()[row] = w.solved()[row];
}
GPUSIM_PHASE void start_course_row(const World& w, int row) {
    w.row_sweep()[row] = w.solved()[row];
    w.row_course()[row] = real(0);
}
GPUSIM_PHASE void start_course_body(const World& w, int i) {
    w.twist_sweep()[i] = w.twist()[i];
    w.twist_course()[i] = real(0);
}
GPUSIM_PHASE void start_course_pair(const World& w, int place) {
    if (place == 0) {
        *w.square_before() = 0.0;
        *w.sweep_count() = 0;
    }
    if (place >= *w.touching()) return;
    real* r = record_at(w, place);
    for (int k = 0; k < record_points(r); ++k) clear_numbers(point_record(r, k) + AT_COURSE, 3);
}
// What a sweep did to a manifold, for the sweeps to end when they change little.
GPUSIM_FN void end_manifold(const World& w, real* r, const Sweep& s) {
    real load = real(0);
    for (int k = 0; k < record_points(r); ++k) load = larger(load, point_record(r, k)[AT_IMPULSE]);
    raise_to(w.largest_change(), s.most);
    raise_to(w.largest_load(), load);
    note_square(w, r);
}
GPUSIM_SHARED void sweep_manifold(const World& w, int place, bool shared) {
    const int m = w.color_member()[place];
    real* r = record_at(w, place);
    Sweep s;
    start_sweep(r, w.twist(), s);
    sweep_points(w, m, r, s);
    move_sides(w, m, r, shared, s.wrench, w.twist());
    end_manifold(w, r, s);
}
// Impulses of the last kick.
GPUSIM_FN void warm_wrench(real* r, real* wrench) {
    for (int k = 0; k < 6; ++k) wrench[k] = real(0);
    for (int n = 0; n < record_points(r); ++n) {
        real *p = point_record(r, n), force[3], torque[3];
        for (int k = 0; k < 3; ++k)
            force[k] = r[AT_FRAME + k] * p[AT_IMPULSE] + r[AT_FRAME + 3 + k] * p[AT_IMPULSE + 1] + r[AT_FRAME + 6 + k] * p[AT_IMPULSE + 2];
        cross3(p + AT_PLACE, force, torque);
        for (int k = 0; k < 3; ++k) {
            wrench[k] += force[k];
            wrench[3 + k] += torque[k];
        }
    }
    for (int k = 0; k < 3; ++k) {
        wrench[k] += r[AT_FRAME + 3 + k] * r[AT_SHEAR] + r[AT_FRAME + 6 + k] * r[AT_SHEAR + 1];
        wrench[3 + k] += r[AT_FRAME + k] * r[AT_TORQUE] + r[AT_FRAME + 3 + k] * r[AT_TORQUE + 1] + r[AT_FRAME + 6 + k] * r[AT_TORQUE + 2];
    }
}
GPUSIM_SHARED void warm_manifold(const World& w, int place, bool shared) {
    real *r = record_at(w, place), wrench[6];
    warm_wrench(r, wrench);
    move_sides(w, w.color_member()[place], r, shared, wrench, w.twist());
}
// Sum of the overflow sides' changes of body b in their fixed order.
GPUSIM_FN void add_parts(const World& w, int b, real* velocity) {
    if (!overflow_size(w) || !w.dynamic()[b]) return;
    for (int n = w.part_start()[b]; n < w.part_start()[b + 1]; ++n)
        for (int k = 0; k < 6; ++k) velocity[6 * b + k] += w.part_change()[6 * w.part_side()[n] + k];
}
GPUSIM_PHASE void add_contact_parts(const World& w, int b) { add_parts(w, b, w.twist()); }
// Item i of a list of manifolds: a color or the overflow.
GPUSIM_PHASE void warm_contact(const World& w, int list, int i) { warm_manifold(w, w.color_first()[list] + i, list == w.max_colors()); }
GPUSIM_PHASE void sweep_contact(const World& w, int list, int i) { sweep_manifold(w, w.color_first()[list] + i, list == w.max_colors()); }

// After the drift, which takes overlaps back and lets points in touch give way: velocities without either, and points that
// were pressed together in this substep leave with their speed of impact. The impulses go on from where they are.
GPUSIM_PHASE void settle_pair(const World& w, int place) {
    if (place >= *w.touching()) return;
    const bool soft = soft_normal(w, w.color_member()[place]);
    real* r = record_at(w, place);
    for (int k = 0; k < record_points(r) && !soft; ++k) {
        real* p = point_record(r, k);
        const bool bounces = p[AT_IMPACT] > real(0) && p[AT_IMPULSE] > real(0);
        if (p[AT_GAMMA] > real(0) || p[AT_PUSH] > real(0) || bounces) set_flag(w.settling());
        if (!(p[AT_IMPULSE] > real(0))) p[AT_IMPACT] = real(0);
        p[AT_GAMMA] = real(0);
        p[AT_BIAS] = p[AT_IMPACT] > real(0) ? -p[AT_IMPACT] : p[AT_BIAS] + p[AT_PUSH];
        invert_point(p, false);
    }
}
