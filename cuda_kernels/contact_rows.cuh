// Manifolds as rows: geometry and masses in stage prepare, biases after the kick, what is kept in stage drift
// (gpusim/reference/contact_rows.py, where the equations stand). The record of a manifold holds everything that a sweep
// needs in the frame (normal, tangent, tangent), with wrenches about its middle.
#pragma once
#include "contact_coloring.cuh"
#include "contact_laws.cuh"
#include "curvature.cuh"
#include "rows.cuh"

// Records stand in the order of the colors, in which sweeps go through them.
GPUSIM_FN real* record_at(const World& w, int place) { return w.manifold() + RECORD_NUMBERS * place; }
GPUSIM_FN real* record(const World& w, int m) { return record_at(w, w.record_place()[m]); }
GPUSIM_FN int record_body(const real* r, int side) { return int(r[AT_BODIES + side]); }
GPUSIM_FN int record_points(const real* r) { return int(r[AT_COUNT]); }
GPUSIM_FN real* point_record(real* r, int k) { return r + FIRST_POINT + POINT_NUMBERS * k; }

// Tangents of a unit normal (Duff and others 2017); they turn steadily with it but for z = -1 to 0.
template <class T> GPUSIM_FN void tangents(const T* n, T* first, T* second) {
    const T sign = n[2] < T(0) ? T(-1) : T(1);
    const T a = T(-1) / (sign + n[2]), b = n[0] * n[1] * a;
    first[0] = T(1) + sign * n[0] * n[0] * a; first[1] = sign * b; first[2] = -sign * n[0];
    second[0] = b; second[1] = sign + n[1] * n[1] * a; second[2] = -n[1];
}
// Velocity of B relative to A at an arm from the middle of the manifold, from their relative twist there.
GPUSIM_FN void velocity_at(const real* twist, const real* arm, real* out) {
    cross3(twist + 3, arm, out);
    for (int k = 0; k < 3; ++k) out[k] += twist[k];
}
// Relative twist (velocity, rate) of B against A at the middle of the manifold.
GPUSIM_FN void relative_twist(const real* r, const real* velocity, real* out) {
    const real *a = velocity + 6 * record_body(r, 0), *b = velocity + 6 * record_body(r, 1);
    real of_a[3], of_b[3];
    cross3(a + 3, r + AT_ARM, of_a);
    cross3(b + 3, r + AT_ARM + 3, of_b);
    for (int k = 0; k < 3; ++k) {
        out[k] = (b[k] + of_b[k]) - (a[k] + of_a[k]);
        out[3 + k] = b[3 + k] - a[3 + k];
    }
}
// What a wrench (force, torque about the middle) does to one side, +1 on B and -1 on A.
GPUSIM_FN void side_motion(const World& w, const real* r, int side, const real* wrench, real* out) {
    const int b = record_body(r, side);
    const real sign = side ? real(1) : real(-1), inverse_mass = w.inverse_mass()[b], *mobility = w.mobility() + 9 * b;
    real torque[3];
    cross3(r + AT_ARM + 3 * side, wrench, torque);
    for (int k = 0; k < 3; ++k) torque[k] = sign * (torque[k] + wrench[3 + k]);
    for (int k = 0; k < 3; ++k) {
        out[k] = sign * wrench[k] * inverse_mass;
        out[3 + k] = mobility[3 * k] * torque[0] + mobility[3 * k + 1] * torque[1] + mobility[3 * k + 2] * torque[2];
    }
}
// Relative twist that a wrench brings, from the motions of both sides.
GPUSIM_FN void relative_motion(const real* r, const real* motion_a, const real* motion_b, real* out) {
    real of_a[3], of_b[3];
    cross3(motion_a + 3, r + AT_ARM, of_a);
    cross3(motion_b + 3, r + AT_ARM + 3, of_b);
    for (int k = 0; k < 3; ++k) {
        out[k] = (motion_b[k] + of_b[k]) - (motion_a[k] + of_a[k]);
        out[3 + k] = motion_b[3 + k] - motion_a[3 + k];
    }
}
// out = response wrench.
GPUSIM_FN void respond(const real* r, const real* wrench, real* out) {
    const real* row = r + AT_RESPONSE;
    for (int k = 0; k < 6; ++k, row += 6) out[k] = dot6(row, wrench);
}
// Adds what a wrench on one side does to the relative twist, n times for n parts of the body's mass. With the arm c,
// mobility J and inverse mass: rate J T + J [c]x P, velocity (1/m - [c]x J [c]x) P - [c]x J T.
GPUSIM_FN void add_response(const World& w, const real* r, int side, real parts, real* out) {
    const int b = record_body(r, side);
    const real *mobility = w.mobility() + 9 * b, *c = r + AT_ARM + 3 * side, mass = parts * w.inverse_mass()[b];
    real cross[9], turn[9], back[9];
    skew3(c, cross);
    product33(mobility, cross, turn);
    product33(cross, turn, back);
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            out[6 * i + j] += (i == j ? mass : real(0)) - parts * back[3 * i + j];
            out[6 * (3 + i) + j] += parts * turn[3 * i + j];
            out[6 * i + 3 + j] += parts * turn[3 * j + i];
            out[6 * (3 + i) + 3 + j] += parts * mobility[3 * i + j];
        }
}
// Response of free bodies; those with many overflow manifolds as if they were split among them.
GPUSIM_FN void free_response(const World& w, int m, real* r) {
    clear_numbers(r + AT_RESPONSE, 36);
    for (int side = 0; side < 2; ++side) {
        const int b = record_body(r, side);
        if (w.dynamic()[b]) add_response(w, r, side, parts_of(w, m, b), r + AT_RESPONSE);
    }
}
// Rows of a point, from the response: the Jacobian by columns of (normal, tangent, tangent, 0), six of them, then the
// relative twists that unit impulses along the three bring, eight numbers each. A CPU keeps them, as it would take longer
// to find them anew in every sweep and has vectors of 4 and 8 numbers; a GPU has no memory to spare, but arithmetic.
#define ROW_NUMBERS 24
#define POINT_ROW_NUMBERS 48
#if GPUSIM_GPU || defined(GPUSIM_PLAIN)
#define WIDE 6
#else
#define WIDE 8
typedef real Wide4 __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef real Wide8 __attribute__((vector_size(8 * sizeof(real)), aligned(sizeof(real)), may_alias));
#endif
// u = rows twist, and twist += motions change: the same sums in the same order, by vectors on a CPU.
GPUSIM_FN void rows_velocity(const real* rows, const real* twist, real* u) {
#if WIDE == 6
    for (int d = 0; d < 3; ++d) {
        u[d] = rows[d] * twist[0];
        for (int c = 1; c < 6; ++c) u[d] += rows[4 * c + d] * twist[c];
    }
#else
    const Wide4* column = reinterpret_cast<const Wide4*>(rows);
    Wide4 sum = column[0] * twist[0];
    for (int c = 1; c < 6; ++c) sum += column[c] * twist[c];
    *reinterpret_cast<Wide4*>(u) = sum;
#endif
}
GPUSIM_FN void rows_motion(const real* rows, const real* change, real* twist) {
#if WIDE == 6
    for (int k = 0; k < 6; ++k)
        twist[k] += rows[ROW_NUMBERS + k] * change[0] + rows[ROW_NUMBERS + 8 + k] * change[1] + rows[ROW_NUMBERS + 16 + k] * change[2];
#else
    const Wide8* motion = reinterpret_cast<const Wide8*>(rows + ROW_NUMBERS);
    *reinterpret_cast<Wide8*>(twist) += motion[0] * change[0] + motion[1] * change[1] + motion[2] * change[2];
#endif
}
GPUSIM_FN void find_rows(const real* r, const real* p, real* rows) {
    for (int d = 0; d < 3; ++d) {
        real wrench[6], *motion = rows + ROW_NUMBERS + 8 * d;
        copy3(r + AT_FRAME + 3 * d, wrench);
        cross3(p + AT_PLACE, wrench, wrench + 3);
        respond(r, wrench, motion);
        motion[6] = motion[7] = real(0);
        for (int c = 0; c < 6; ++c) rows[4 * c + d] = wrench[c];
    }
    for (int c = 0; c < 6; ++c) rows[4 * c + 3] = real(0);
}
#if GPUSIM_GPU
#define POINT_ROWS(rows, w, r, points)                   \
    real rows[4 * POINT_ROW_NUMBERS];                    \
    for (int n_ = 0; n_ < (points); ++n_) find_rows(r, point_record(r, n_), rows + POINT_ROW_NUMBERS * n_)
#else
#define POINT_ROWS(rows, w, r, points) const real* rows = kept_rows(w, r)
// Of a record's points.
GPUSIM_FN real* kept_rows(const World& w, const real* r) { return w.point_rows() + 4 * POINT_ROW_NUMBERS * ((r - w.manifold()) / RECORD_NUMBERS); }
#endif
// Masses of the points in the frame.
GPUSIM_SHARED void point_masses(const World& w, real* r) {
    for (int n = 0; n < record_points(r); ++n) {
#if GPUSIM_GPU
        real rows[POINT_ROW_NUMBERS];
#else
        real* rows = kept_rows(w, r) + POINT_ROW_NUMBERS * n;
#endif
        real *p = point_record(r, n), k[9];
        find_rows(r, p, rows);
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) {
                real sum = real(0);
                for (int c = 0; c < 6; ++c) sum += rows[4 * c + i] * rows[ROW_NUMBERS + 8 * j + c];
                k[3 * i + j] = sum;
            }
        real* mass = p + AT_MASS;
        mass[0] = k[0]; mass[1] = k[3]; mass[2] = k[6];
        mass[3] = k[4]; mass[4] = k[5]; mass[5] = k[8];
    }
}
GPUSIM_FN void world_anchor(const World& w, int shape, const double* anchor, double* out) {
    if (w.shape_rolls()[shape]) copy3(anchor, out);
    else turn3(w.rotation() + 9 * w.shape_body()[shape], anchor, out);
}
// Points of pair m at the current poses: arms from both centers of mass to the middle of the gap, and the gap.
GPUSIM_FN double place_contact(const World& w, int m, int k, double* arm_a, double* arm_b) {
    const int a = w.pair_shapes()[2 * m], b = w.pair_shapes()[2 * m + 1];
    const double *anchor = w.contact_anchor() + 6 * (4 * m + k), *normal = w.pair_normal() + 3 * m;
    world_anchor(w, a, anchor, arm_a);
    world_anchor(w, b, anchor + 3, arm_b);
    double apart[3];
    for (int j = 0; j < 3; ++j)
        apart[j] = (w.position()[3 * w.shape_body()[b] + j] - w.position()[3 * w.shape_body()[a] + j]) + (arm_b[j] - arm_a[j]);
    const double gap = dot3(normal, apart);
    // A surface that rolls takes the point along with its body; the other one's stays under it.
    const bool rolls_a = w.shape_rolls()[a], rolls_b = w.shape_rolls()[b];
    const double share = rolls_a == rolls_b ? 0.5 : (rolls_a ? 0.0 : 1.0);
    for (int j = 0; j < 3; ++j) {
        const double along = 0.5 * gap * normal[j], across = apart[j] - gap * normal[j];
        arm_a[j] += along + share * across;
        arm_b[j] -= along + (1.0 - share) * across;
    }
    return gap;
}
// Friction and restitution of a pair.
GPUSIM_FN void pair_material(const World& w, int m, real* r) {
    const int a = w.pair_shapes()[2 * m], b = w.pair_shapes()[2 * m + 1];
    const int own = find_in(w.take_start(), w.take(), a, b);
    const int row = own >= 0 ? w.take_material()[own] : -1;
    if (row >= 0) {
        const double* given = w.pair_materials() + 6 * row;
        for (int k = 0; k < 4; ++k) r[AT_FRICTION + k] = real(given[k]);
        return;
    }
    r[AT_FRICTION] = real(square_root(w.shape_friction()[a] * w.shape_friction()[b]));
    r[AT_ROLLING] = real(square_root(w.shape_rolling_friction()[a] * w.shape_rolling_friction()[b]));
    r[AT_SPINNING] = real(square_root(w.shape_spinning_friction()[a] * w.shape_spinning_friction()[b]));
    r[AT_RESTITUTION] = real(larger(w.shape_restitution()[a], w.shape_restitution()[b]));
}
// Impulse of a kept world vector in the frame.
GPUSIM_FN void to_frame(const real* r, const stored* kept, real factor, real* out) {
    const real own[3] = {real(kept[0]) * factor, real(kept[1]) * factor, real(kept[2]) * factor};
    for (int k = 0; k < 3; ++k) out[k] = dot3(r + AT_FRAME + 3 * k, own);
}
// New points have nothing to start from, so they are solved in turn more often.
GPUSIM_FN int point_passes(const World& w, int m) {
    const int points = w.pair_points()[m];
    int age = NEW_AGE;
    for (int k = 0; k < points; ++k) age = smaller(age, w.contact_age()[4 * m + k]);
    return points == 1 ? 1 : (age < NEW_AGE ? NEW_PASSES : POINT_PASSES);
}
// Item: a place for a record. Geometry, masses and the impulses of the last kick as a start.
GPUSIM_PHASE void prepare_pair(const World& w, int place) {
    if (place >= *w.touching()) return;
    const int m = w.color_member()[place];
    const int points = w.pair_points()[m];
    real* r = record_at(w, place);
    for (int side = 0; side < 2; ++side) r[AT_BODIES + side] = real(side_body(w, m, side));
    r[AT_COUNT] = real(points);
    r[AT_PASSES] = real(point_passes(w, m));
    r[AT_LAW] = real(friction_law(w, m));
    double arms[24], middle[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (int k = 0; k < points; ++k) {
        point_record(r, k)[AT_GAP] = real(place_contact(w, m, k, arms + 6 * k, arms + 6 * k + 3));
        for (int j = 0; j < 6; ++j) middle[j] += arms[6 * k + j];
    }
    for (int j = 0; j < 6; ++j) {
        middle[j] = middle[j] / points;
        r[AT_ARM + j] = real(middle[j]);
    }
    for (int j = 0; j < 3; ++j) r[AT_FRAME + j] = real(w.pair_normal()[3 * m + j]);
    tangents(r + AT_FRAME, r + AT_FRAME + 3, r + AT_FRAME + 6);
    pair_material(w, m, r);
    const double before = *w.kick_before();
    const real factor = before > 0.0 ? kick_time(w) / real(before) : real(0);
    for (int k = 0; k < points; ++k) {
        real* p = point_record(r, k);
        for (int j = 0; j < 3; ++j) p[AT_PLACE + j] = real(arms[6 * k + j] - middle[j]);
        to_frame(r, w.contact_impulse() + 3 * (4 * m + k), factor, p + AT_IMPULSE);
        p[AT_IMPULSE] = larger(p[AT_IMPULSE], real(0));
        p[AT_IMPACT] = p[AT_PUSH] = real(0);
    }
    to_frame(r, w.pair_torque() + 3 * m, factor, r + AT_TORQUE);
    real shear[3];
    to_frame(r, w.pair_force() + 3 * m, factor, shear);
    r[AT_SHEAR] = shear[1];
    r[AT_SHEAR + 1] = shear[2];
    if (is_jointed(w, m)) return;  // the direct solver finds its response
    free_response(w, m, r);
    point_masses(w, r);
}

// How the middle of the gap moves until half a step later, along both arms: second order in the step. A point's arms are
// continued from the last substep; where surfaces roll and a step has more than one, there is nothing to continue.
GPUSIM_FN bool continues(const World& w, int m, int k) {
    const bool rolls = w.shape_rolls()[w.pair_shapes()[2 * m]] || w.shape_rolls()[w.pair_shapes()[2 * m + 1]];
    return w.contact_age()[4 * m + k] > 0 && h_prev(w) > real(0) && !w.papers() && !(rolls && w.substeps() > 1);
}
GPUSIM_FN void arm_velocity(const World& w, int m, int k, const real* r, const real* p, real* out) {
    const real *a = w.twist_before() + 6 * record_body(r, 0), *b = w.twist_before() + 6 * record_body(r, 1);
    const stored* old = w.contact_arm() + 6 * (4 * m + k);
    real later_a[3], later_b[3], of_a[3], of_b[3];
    const real half = real(w.h) / (real(2) * h_prev(w));
    for (int j = 0; j < 3; ++j) {
        later_a[j] = half * (r[AT_ARM + j] + p[AT_PLACE + j] - real(old[j]));
        later_b[j] = half * (r[AT_ARM + 3 + j] + p[AT_PLACE + j] - real(old[3 + j]));
    }
    cross3(a + 3, later_a, of_a);
    cross3(b + 3, later_b, of_b);
    subtract3(of_b, of_a, out);
    if (w.substeps() > 1) return;
    // Free bodies turn by the rate in the middle of the drift, not by the one at its start.
    for (int side = 0; side < 2; ++side) {
        const int body = record_body(r, side);
        if (!w.dynamic()[body]) continue;
        real rate[3], arm[3], more[3];
        subtract3(w.midpoint() + 3 * body, w.twist() + 6 * body + 3, rate);
        for (int j = 0; j < 3; ++j) arm[j] = r[AT_ARM + 3 * side + j] + p[AT_PLACE + j];
        cross3(rate, arm, more);
        for (int j = 0; j < 3; ++j) out[j] += side ? more[j] : -more[j];
    }
}
// Rate in the middle of the drift, of the kicked velocities.
GPUSIM_PHASE void middle_body(const World& w, int b) { midpoint_rate(w, b, w.midpoint() + 3 * b); }
// Points in touch give way a little, in proportion to their impulse, as long as the drift lasts: a damper that keeps what
// few sweeps leave undone from swinging up. Sweeps pass a load on by one manifold each, so that a pile of n needs about n
// of them, and gives way the more the fewer there are.
GPUSIM_FN real softness(const World& w) {
    const double sweeps = FIRM_MANIFOLDS * w.iterations() / double(smaller(*w.touching(), int(FIRM_MANIFOLDS)));
    return real(1.0 / larger(sweeps * sweeps, double(SOFTEST)));
}
// What a sweep would have to divide by: 1/(mass + compliance), 1/determinant of the tangents' masses, and the load that
// rubs for a unit of normal impulse: a rigid point that gives way still rubs with all of its load.
GPUSIM_FN void invert_point(real* p, bool soft) {
    const real* mass = p + AT_MASS;
    p[AT_SOLVE] = real(1) / (mass[0] + p[AT_GAMMA]);
    p[AT_SOLVE + 1] = real(1) / (mass[3] * mass[5] - mass[4] * mass[4]);
    p[AT_SOLVE + 2] = soft ? real(1) : real(1) + p[AT_GAMMA] / mass[0];
}
// Rows of point k: biases after the kick, from the velocities before it.
GPUSIM_FN void aim_point(const World& w, int m, int k, real* r, const real* before, const real* kicked) {
    real *p = point_record(r, k), u[3], v[3], bend[3] = {real(0), real(0), real(0)};
    const real h = real(w.h), gap = p[AT_GAP], *n = r + AT_FRAME;
    velocity_at(before, p + AT_PLACE, u);
    velocity_at(kicked, p + AT_PLACE, v);
    real turn = real(0);
    if (continues(w, m, k)) {
        arm_velocity(w, m, k, r, p, bend);
        if (w.substeps() == 1) turn = h / (real(2) * h_prev(w)) * dot3(w.pair_bend() + 3 * m, u);
    }
    real slip[3];
    to_frame(r, w.contact_slip() + 3 * (4 * m + k), real(SLIP_SHARE) / h, slip);
    // Within the slop points neither come nearer nor apart: which of many carry a load must not hang on rounding.
    // What bounces lands on the surface itself.
    const bool apart = gap > (r[AT_RESTITUTION] > real(0) ? real(0) : real(w.contact_slop()));
    const real over = -(gap + real(w.contact_slop()));
    // A trial for what forces are now leaves out what only the drift needs.
    p[AT_PUSH] = over > real(0) && !*w.trial() ? smaller(real(PUSH_SHARE) * over / h, real(w.push_speed())) : real(0);
    p[AT_BIAS] = (apart ? gap / h : -p[AT_PUSH]) + dot3(n, bend) + turn;
    p[AT_BIAS + 1] = dot3(n + 3, bend) + slip[1];
    p[AT_BIAS + 2] = dot3(n + 6, bend) + slip[2];
    p[AT_GAMMA] = apart || *w.trial() || !w.contact_age()[4 * m + k] ? real(0) : softness(w) * p[AT_MASS];
    const bool soft = soft_normal(w, m);
    if (soft) {
        soften_point(w, m, p, dot3(n, u));
        p[AT_PUSH] = real(0);
    } else {
        p[AT_IMPACT] = impact_speed(w, r[AT_RESTITUTION], gap, dot3(n, u), dot3(n, v));
    }
    invert_point(p, soft);
}
// Item: a place for a record.
GPUSIM_PHASE void aim_pair(const World& w, int place) {
    if (place >= *w.touching()) return;
    const int m = w.color_member()[place];
    real *r = record_at(w, place), before[6], kicked[6];
    relative_twist(r, w.twist_before(), before);
    relative_twist(r, w.twist_kicked(), kicked);
    aim_law(w, m, r);
    for (int k = 0; k < w.pair_points()[m]; ++k) aim_point(w, m, k, r, before, kicked);
}

GPUSIM_FN void from_frame(const real* r, const real* p, stored* out) {
    for (int k = 0; k < 3; ++k)
        out[k] = stored(r[AT_FRAME + k] * p[0] + r[AT_FRAME + 3 + k] * p[1] + r[AT_FRAME + 6 + k] * p[2]);
}
GPUSIM_FN int mode_of(const real* r, const real* p) {
    if (!(p[AT_IMPULSE] > real(0))) return CONTACT_FLIGHT;
    const real rub = square_root(p[AT_IMPULSE + 1] * p[AT_IMPULSE + 1] + p[AT_IMPULSE + 2] * p[AT_IMPULSE + 2]);
    return rub >= real(SLIDING_SHARE) * r[AT_FRICTION] * p[AT_IMPULSE] * p[AT_SOLVE + 2] ? CONTACT_SLIDING : CONTACT_STICKING;
}
// How far a sticking point slips in the drift; its arms, for the next substep.
GPUSIM_FN void slip_point(const World& w, int m, int k, const real* r, const real* p, const real* twist) {
    const int at = 4 * m + k;
    // Other laws of friction never hold a point where it was.
    const bool sticks = friction_law(w, m) == LAW_COULOMB && mode_of(r, p) == CONTACT_STICKING;
    real u[3], slip[3];
    velocity_at(twist, p + AT_PLACE, u);
    to_frame(r, w.contact_slip() + 3 * at, real(1), slip);
    slip[0] = real(0);
    for (int j = 1; j < 3; ++j) {
        // The bias holds what the arms' turn adds to the velocity, and the share of the slip that is taken back.
        const real turning = p[AT_BIAS + j] - real(SLIP_SHARE) * slip[j] / real(w.h);
        slip[j] = sticks ? slip[j] + real(w.h) * (dot3(r + AT_FRAME + 3 * j, u) + turning) : real(0);
    }
    from_frame(r, slip, w.contact_slip() + 3 * at);
    for (int j = 0; j < 3; ++j) {
        w.contact_arm()[6 * at + j] = stored(r[AT_ARM + j] + p[AT_PLACE + j]);
        w.contact_arm()[6 * at + 3 + j] = stored(r[AT_ARM + 3 + j] + p[AT_PLACE + j]);
    }
    w.contact_age()[at] += 1;
}
// Item: a place for a record.
GPUSIM_PHASE void slip_pair(const World& w, int place) {
    if (place >= *w.touching()) return;
    const int m = w.color_member()[place];
    real *r = record_at(w, place), twist[6];
    relative_twist(r, w.twist(), twist);
    for (int k = 0; k < w.pair_points()[m]; ++k) slip_point(w, m, k, r, point_record(r, k), twist);
}
// Item: a place for a record. Impulses live on; what bounced starts its next contact from nothing.
GPUSIM_PHASE void store_pair(const World& w, int place) {
    if (place >= *w.touching()) return;
    const int m = w.color_member()[place];
    real* r = record_at(w, place);
    for (int k = 0; k < w.pair_points()[m]; ++k) {
        const real* p = point_record(r, k);
        const int at = 4 * m + k;
        from_frame(r, p + AT_IMPULSE, w.contact_impulse() + 3 * at);
        if (p[AT_IMPACT] > real(0) && p[AT_IMPULSE] > real(0)) clear_numbers(w.contact_impulse() + 3 * at, 3);
        w.contact_mode()[at] = mode_of(r, p);
    }
    from_frame(r, r + AT_TORQUE, w.pair_torque() + 3 * m);
    const real shear[3] = {real(0), r[AT_SHEAR], r[AT_SHEAR + 1]};
    from_frame(r, shear, w.pair_force() + 3 * m);
}
