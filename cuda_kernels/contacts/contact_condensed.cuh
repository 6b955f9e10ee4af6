// Few contacts on articulated bodies with the direct solver: the sweeps of contact_direct.cuh in contact space. The
// matrix R = C M^-1 C^T - Y^T Z couples all manifolds (Delassus matrix, joints included). So a sweep touches neither
// bodies nor joints. They get the summed wrenches after the last sweep. Results equal those of sweeps along the paths,
// up to round-off. The first sweep runs along the paths, because often it is the only one.
#pragma once
#include "../solve/contact_direct.cuh"

// Find where each manifold's numbers begin. The count is 0 if they do not fit, or if other bodies have contacts too.
GPUSIM_PHASE void condense_list(const World& w, int) {
    const int size = articulated_size(w);
    int end = 0;
    bool fits = *w.touching() == size && w.condensed_numbers() > 0;
    for (int n = 0; n < size && fits; ++n) {
        w.condensed_start()[n] = end;
        end += path_width(read_record(w, articulated_member(w, n)));
        fits = end <= w.condensed_numbers();
    }
    if (fits) w.condensed_start()[size] = end;
    *w.condensed_count() = fits ? end : 0;
    *w.condensed() = *w.condensed_fits() = 0;
}
// The responses belong to the previous factor.
GPUSIM_PHASE void forget_condensed(const World& w, int) { *w.condensed_fits() = 0; }
GPUSIM_FN bool condenses(const World& w) { return !*w.done() && *w.condensed_count() > 0 && *w.condensed() == 0; }
GPUSIM_FN int column_at(const World& w, int number) { return number * w.condensed_numbers(); }

// Add the effect of unit wrenches at one manifold on the twist at another, through shared bodies: six numbers a column.
GPUSIM_FN void shared_response(ReadLane from, ReadLane to, int columns, real* out) {
    for (int side = 0; side < 2; ++side)
        for (int other = 0; other < 2; ++other) {
            if (from[AT_MOVED + side] < real(0) || from[AT_MOVED + side] != to[AT_MOVED + other]) continue;
            for (int j = 0; j < columns; ++j) {
                real unit[6] = {}, moved[6], part[6];
                const real still[6] = {};
                unit[j] = real(1);
                side_motion(from, side, unit, moved);
                relative_motion(to, other ? still : moved, other ? moved : still, part);
                for (int k = 0; k < 6; ++k) out[6 * j + k] += part[k];
            }
        }
}
// out -= Y^T Z for one pivot.
GPUSIM_FN void take_pivot(int block, const real* y, const real* z, int columns, real* out) {
#if WHOLE_BLOCKS
    Six<real> rows[GPUSIM_MAX_BLOCK];
    for (int row = 0; row < block; ++row) rows[row] = Six<real>::load(y + 6 * row);
    for (int j = 0; j < columns; ++j, z += block) {
        Six<real> sum = rows[0] * z[0];
        for (int row = 1; row < block; ++row) sum = sum + rows[row] * z[row];
        (Six<real>::load(out + 6 * j) - sum).store(out + 6 * j);
    }
#else
    for (int j = 0; j < columns; ++j, z += block)
        for (int k = 0; k < 6; ++k) {
            real sum = y[k] * z[0];
            for (int row = 1; row < block; ++row) sum += y[6 * row + k] * z[row];
            out[6 * j + k] -= sum;
        }
#endif
}
// Add the effect through the joints: sum over the pivots that both paths have.
GPUSIM_FN void take_common_path(const World& w, int from, int to, int columns, real* out) {
    const int block = w.block(), ends[2] = {w.path_count()[from], w.path_count()[to]};
    for (int i = 0, k = 0; i < ends[0] && k < ends[1];) {
        const int a = path_pivot_at(w, from, i), b = path_pivot_at(w, to, k);
        if (a == b && block == 6) take_pivot(6, path_y_at(w, to, k), path_z_at(w, from, i), columns, out);
        else if (a == b) take_pivot(block, path_y_at(w, to, k), path_z_at(w, from, i), columns, out);
        i += a <= b;
        k += b <= a;
    }
}
// Item: an ordered pair of manifolds. The response is symmetric, so only one of two mirrored pairs is computed.
GPUSIM_FN int condensed_pairs(const World& w) { return *w.condensed_count() ? articulated_size(w) * articulated_size(w) : 0; }
GPUSIM_PHASE void condense_pair(const World& w, int item) {
    const int size = articulated_size(w), from = item / size, to = item % size;
    if (to > from) return;
    const ReadLane source = read_record(w, articulated_member(w, from)), target = read_record(w, articulated_member(w, to));
    const int first = w.condensed_start()[from], other = w.condensed_start()[to];
    const int columns = condensed_width_of(w, from), rows = condensed_width_of(w, to);
    real out[36];
    for (int k = 0; k < 6 * columns; ++k) out[k] = from == to ? source[AT_RESPONSE + 6 * (k % 6) + k / 6] : real(0);
    if (from != to) {
        shared_response(source, target, columns, out);
        take_common_path(w, from, to, columns, out);
    }
    for (int j = 0; j < columns; ++j)
        for (int k = 0; k < rows; ++k) {
            w.condensed_response()[column_at(w, first + j) + other + k] = out[6 * j + k];
            w.condensed_response()[column_at(w, other + k) + first + j] = out[6 * j + k];
        }
}

// Set the relative twists, after sum_path. The condensed_... arrays hold twists and then wrenches.
GPUSIM_PHASE void start_condensed(const World& w, int m, int n) {
    real twist[6];
    relative_twist(record(w, m), w.twist(), twist);
    add_path_twist(w, twist);
    for (int k = 0; k < condensed_width_of(w, n); ++k) w.condensed_now()[w.condensed_start()[n] + k] = twist[k];
}
#if WHOLE_BLOCKS
// Arrays in contact space are padded to multiples of eight.
typedef real Eight __attribute__((vector_size(8 * sizeof(real)), aligned(alignof(real)), may_alias));
GPUSIM_FN Eight& eight(real* at) { return *reinterpret_cast<Eight*>(at); }
GPUSIM_FN const Eight& eight(const real* at) { return *reinterpret_cast<const Eight*>(at); }
#endif
// Item: on a GPU one number in contact space. On a CPU all of them, eight at a time.
GPUSIM_FN int condensed_items(const World& w) { return WHOLE_BLOCKS ? 1 : *w.condensed_count(); }
// The search begins with the first sweep: its wrenches, in ``condensed_direction``, changed twists by R times them.
GPUSIM_PHASE void start_condensed_course(const World& w, int item) {
    const int count = *w.condensed_count(), numbers = w.condensed_numbers();
    const real* wrench = w.condensed_direction() + numbers;
#if WHOLE_BLOCKS
    (void)item;
    for (int at = 0; at < count; at += 8) {
        Eight sum = eight(w.condensed_response() + column_at(w, 0) + at) * wrench[0];
        for (int k = 1; k < count; ++k) sum += eight(w.condensed_response() + column_at(w, k) + at) * wrench[k];
        eight(w.condensed_sweep() + at) = eight(w.condensed_now() + at) - sum;
        eight(w.condensed_direction() + at) = Eight{};
        eight(w.condensed_now() + numbers + at) = Eight{};
        eight(w.condensed_sweep() + numbers + at) = -eight(w.condensed_direction() + numbers + at);
    }
#else
    real sum = w.condensed_response()[item] * wrench[0];
    for (int k = 1; k < count; ++k) sum += w.condensed_response()[column_at(w, k) + item] * wrench[k];
    w.condensed_sweep()[item] = w.condensed_now()[item] - sum;
    w.condensed_direction()[item] = w.condensed_now()[numbers + item] = real(0);
    w.condensed_sweep()[numbers + item] = -wrench[item];
#endif
}
GPUSIM_PHASE void enter_condensed(const World& w, int item) {
    const int first = WHOLE_BLOCKS ? 0 : item, end = WHOLE_BLOCKS ? *w.condensed_count() : item + 1;
    for (int k = first; k < end; ++k) w.condensed_direction()[w.condensed_numbers() + k] = real(0);
    if (item == 0) *w.condensed() = *w.condensed_fits() = 1;
}
GPUSIM_PHASE void end_condensed(const World& w, int) { *w.condensed() = 0; }
GPUSIM_PHASE void sweep_condensed(const World& w, int m, int n) {
    const int first = w.condensed_start()[n], width = condensed_width_of(w, n);
    Lane r = record(w, m);
    Sweep<real> s;
    for (int k = 0; k < 6; ++k) {
        s.twist[k] = k < width ? w.condensed_now()[first + k] : real(0);
        s.wrench[k] = real(0);
    }
    s.most = real(0);
    sweep_points(w, w.record_place()[m], r, Floors{w.point_floor() + 8 * n}, s);
    for (int k = 0; k < width; ++k) {
        w.condensed_now()[w.condensed_numbers() + first + k] += s.wrench[k];
        w.path_wrench()[k] = s.wrench[k];
    }
    end_manifolds(w, w.record_place()[m], r, 1, s);
}
// Add the effect of the n-th manifold's wrench to all relative twists.
GPUSIM_PHASE void spread_condensed(const World& w, int n, int item) {
    const int first = w.condensed_start()[n], width = condensed_width_of(w, n);
    const real* f = w.path_wrench();
#if WHOLE_BLOCKS
    (void)item;
    for (int at = 0; at < *w.condensed_count(); at += 8) {
        Eight sum = eight(w.condensed_response() + column_at(w, first) + at) * f[0];
        for (int k = 1; k < width; ++k) sum += eight(w.condensed_response() + column_at(w, first + k) + at) * f[k];
        eight(w.condensed_now() + at) += sum;
    }
#else
    real sum = w.condensed_response()[column_at(w, first) + item] * f[0];
    for (int k = 1; k < width; ++k) sum += w.condensed_response()[column_at(w, first + k) + item] * f[k];
    w.condensed_now()[item] += sum;
#endif
}
// Extend twists and wrenches along the search direction, like extend_numbers. Item: a number of either, on a CPU all.
GPUSIM_FN int condensed_course(const World& w) { return WHOLE_BLOCKS ? 1 : 2 * *w.condensed_count(); }
GPUSIM_PHASE void extend_condensed(const World& w, int item) {
    const int count = *w.condensed_count(), numbers = w.condensed_numbers();
#if WHOLE_BLOCKS
    const real beta = *w.beta();
    (void)item;
    for (int half = 0; half < 2; ++half)
        for (int at = half * numbers; at < half * numbers + count; at += 8) {
            const Eight was = eight(w.condensed_now() + at), along = eight(w.condensed_direction() + at) * beta;
            const Eight moved = was + along, step = was - eight(w.condensed_sweep() + at);
            eight(w.condensed_now() + at) = moved;
            eight(w.condensed_direction() + at) = beta > real(0) ? along + step : Eight{};
            eight(w.condensed_sweep() + at) = moved;
        }
#else
    const int at = item < count ? item : numbers + item - count;
    extend_numbers(*w.beta(), at, at + 1, w.condensed_now(), w.condensed_direction(), w.condensed_sweep());
#endif
}
// Move the bodies by the total wrench of the n-th manifold. update_path does the same for the joints.
GPUSIM_PHASE void leave_condensed(const World& w, int m, int n) {
    const int first = w.condensed_numbers() + w.condensed_start()[n], width = condensed_width_of(w, n);
    real wrench[6];
    for (int k = 0; k < 6; ++k) w.path_wrench()[k] = wrench[k] = k < width ? w.condensed_now()[first + k] : real(0);
    move_sides(record(w, m), wrench, w.twist());
}
