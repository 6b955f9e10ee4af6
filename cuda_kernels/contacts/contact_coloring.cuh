// Stage color_contacts: greedy coloring of manifolds (gpusim/reference/contacts/contact_coloring.py). Each body has a
// bit mask of its used colors.
#pragma once
#include "../tickets.cuh"
#include "broad_phase.cuh"

GPUSIM_FN int side_body(const World& w, int m, int side) { return w.shape_body()[w.pair_shapes()[2 * m + side]]; }
// Return whether a manifold is on articulated bodies, so that the direct solver includes the effect of the joints.
GPUSIM_FN bool is_articulated(const World& w, int m) {
    return w.direct() && (w.body_articulated()[side_body(w, m, 0)] || w.body_articulated()[side_body(w, m, 1)]);
}
GPUSIM_PHASE void clear_colors(const World& w, int b) {
    w.body_colors()[2 * b] = w.body_colors()[2 * b + 1] = 0;
    w.body_parts()[b] = 0;
}
GPUSIM_FN unsigned permuted(unsigned k, int bits) {
    const unsigned mask = bits < 32 ? (1u << bits) - 1u : 0xffffffffu;
    const int shift = (bits + 1) / 2;
    k = (k * 0x9E3779B1u) & mask;
    k ^= k >> shift;
    k = (k * 0x85EBCA6Bu) & mask;
    k ^= k >> shift;
    return k & mask;
}
GPUSIM_FN int bits_for(int count) {
    int bits = 1;
    while ((1 << bits) < count) ++bits;
    return bits;
}
GPUSIM_FN int first_free(unsigned low, unsigned high, int colors) {
    for (int c = 0; c < colors; ++c)
        if (!((c < 32 ? low >> c : high >> (c - 32)) & 1u)) return c;
    return OVERFLOW;
}
// Return the lowest color that neither body uses, or OVERFLOW. ``others`` is true if other threads may color manifolds
// at the same time.
GPUSIM_FN int free_color(const World& w, int m, bool others) {
    unsigned masks[2] = {0u, 0u};
    for (int side = 0; side < 2; ++side) {
        const int b = side_body(w, m, side);
        if (!w.dynamic()[b]) continue;
        for (int k = 0; k < 2; ++k) {
            const int* mask = w.body_colors() + 2 * b + k;
            masks[k] |= unsigned(others ? fresh(mask) : *mask);
        }
    }
    return first_free(masks[0], masks[1], w.max_colors());
}
GPUSIM_FN int choose_color(const World& w, int m, bool others) {
    const int color = free_color(w, m, others);
    for (int side = 0; color >= 0 && side < 2; ++side) {
        const int b = side_body(w, m, side);
        // A static body may have several manifolds of one color.
        if (!w.dynamic()[b]) continue;
        int* mask = w.body_colors() + 2 * b + (color >= 32);
        const int bit = int(1u << (color & 31));
        if (others) store_shared(mask, fresh(mask) | bit);
        else *mask |= bit;
    }
    return color;
}
GPUSIM_PHASE void color_pairs(const World& w, int) {
    const int count = *w.pair_count(), bits = bits_for(count);
    *w.touching() = 0;
    for (unsigned k = 0; k < (1u << bits); ++k) {
        const int m = int(permuted(k, bits));
        if (m >= count) continue;
        if (!w.pair_points()[m]) w.manifold_color()[m] = NO_CONTACT;
        else if (is_articulated(w, m)) w.manifold_color()[m] = ARTICULATED;
        else w.manifold_color()[m] = choose_color(w, m, false);
        *w.touching() += w.pair_points()[m] > 0;
    }
}
// Return the list of a manifold: its color, max_colors for the overflow, or max_colors + 1 for articulated manifolds.
GPUSIM_FN int list_of(const World& w, int m) {
    const int color = w.manifold_color()[m];
    return color == OVERFLOW ? w.max_colors() : (color == ARTICULATED ? w.max_colors() + 1 : color);
}
GPUSIM_FN int round_up_to_lanes(int count) { return (count + GPUSIM_LANES - 1) / GPUSIM_LANES * GPUSIM_LANES; }
// Mark the unused lanes of a list.
GPUSIM_FN void mark_unused_lanes(const World& w, int list) {
    const int first = w.color_first()[list], size = w.color_size()[list];
    for (int slot = first + size; slot < first + round_up_to_lanes(size); ++slot) w.color_member()[slot] = -1;
}
GPUSIM_PHASE void list_colors(const World& w, int) {
    const int lists = w.max_colors() + 2, count = *w.pair_count();
    int *first = w.color_first(), *size = w.color_size();
    for (int c = 0; c < lists; ++c) size[c] = 0;
    for (int m = 0; m < count; ++m)
        if (w.manifold_color()[m] != NO_CONTACT) size[list_of(w, m)] += 1;
    first[0] = 0;
    for (int c = 0; c < lists; ++c) {
        first[c + 1] = first[c] + round_up_to_lanes(size[c]);
        mark_unused_lanes(w, c);
        size[c] = 0;
    }
    for (int m = 0; m < count; ++m)
        if (w.manifold_color()[m] != NO_CONTACT) {
            const int list = list_of(w, m), slot = first[list] + size[list]++;
            w.record_index()[m] = slot;
            w.color_member()[slot] = m;
        }
}
// Parallel coloring for large worlds (Jones and Plassmann 1993). A ticket is for consecutive manifolds in the coloring
// order, one for each thread of the block. A manifold waits until all earlier manifolds on its bodies have colors. The
// result does not depend on the number of threads.
#define UNCOLORED -4
// Return the rank of manifold m in the order (inverse of ``permuted``).
GPUSIM_FN unsigned rank_of(unsigned m, int bits) {
    const unsigned mask = bits < 32 ? (1u << bits) - 1u : 0xffffffffu;
    const int shift = (bits + 1) / 2;
    m ^= m >> shift;
    m = (m * 0xA5CB9243u) & mask;
    m ^= m >> shift;
    return (m * 0x0E8B2F51u) & mask;
}
GPUSIM_PHASE void clear_incidents(const World& w, int b) {
    w.incident_start()[b] = w.incident_cursor()[b] = 0;
    if (b == 0) *w.touching() = 0;
}
GPUSIM_PHASE void count_incidents(const World& w, int m) {
    if (m >= *w.pair_count()) return;
    const bool touches = w.pair_points()[m] > 0;
    w.manifold_color()[m] = !touches ? NO_CONTACT : (is_articulated(w, m) ? ARTICULATED : UNCOLORED);
    if (touches) count_one(w.touching());
    for (int side = 0; touches && side < 2; ++side)
        if (w.dynamic()[side_body(w, m, side)]) count_one(w.incident_start() + side_body(w, m, side));
}
GPUSIM_PHASE void scan_incident_part(const World& w, int part) { scan_part(w, w.incident_start(), w.bodies() + 1, part); }
GPUSIM_PHASE void scan_incident_rest(const World& w, int part) { scan_rest(w, w.incident_start(), w.bodies() + 1, part); }
GPUSIM_PHASE void enter_incidents(const World& w, int m) {
    if (m >= *w.pair_count() || !w.pair_points()[m]) return;
    for (int side = 0; side < 2; ++side) {
        const int b = side_body(w, m, side);
        if (w.dynamic()[b]) w.incident()[w.incident_start()[b] + take_number(w.incident_cursor() + b)] = m;
    }
}
// Return whether all earlier manifolds on the bodies of m have colors. The search starts at ``side`` and ``n``.
GPUSIM_FN bool earlier_are_colored(const World& w, int m, int bits, int& side, int& n) {
    const unsigned own_rank = rank_of(m, bits);
    for (; side < 2; ++side, n = 0) {
        const int b = side_body(w, m, side);
        if (!w.dynamic()[b]) continue;
        const int count = w.incident_start()[b + 1] - w.incident_start()[b];
        for (; n < count; ++n) {
            const int other = w.incident()[w.incident_start()[b] + n];
            if (rank_of(other, bits) < own_rank && fresh(w.manifold_color() + other) == UNCOLORED) return false;
        }
    }
    return true;
}
// Color manifolds in order. For each ticket, each thread of the block colors one manifold. Manifolds without a free
// color do not wait.
GPUSIM_PHASE void color_in_order(const World& w) {
    const int count = *w.pair_count(), bits = bits_for(count);
    for (;;) {
        const long long k = (long long)draw_ticket(w) * w.threads + w.tid, ranks = 1ll << bits;
        if (k - w.tid >= ranks) break;
        const int m = k < ranks ? int(permuted(unsigned(k), bits)) : count;
        bool waits = m < count && w.manifold_color()[m] == UNCOLORED;
        int side = 0, n = 0;
        do {
            if (!waits || !(earlier_are_colored(w, m, bits, side, n) || free_color(w, m, true) == OVERFLOW)) continue;
            acquire();
            publish(w.manifold_color() + m, choose_color(w, m, true));
            waits = false;
        } while (any_of_block(w, waits));
    }
}
// Make the lists of manifolds. First count the members of each list in each part of the pairs. Then compute the start
// of each list.
GPUSIM_PHASE void count_colors(const World& w, int part) {
    const int count = *w.pair_count(), size = part_size(count), last = min_(count, (part + 1) * size);
    const int lists = w.max_colors() + 2;
    for (int c = 0; c < lists; ++c) w.color_count()[c * PARTS + part] = 0;
    for (int m = part * size; m < last; ++m)
        if (w.manifold_color()[m] != NO_CONTACT) w.color_count()[list_of(w, m) * PARTS + part] += 1;
}
GPUSIM_PHASE void sum_color(const World& w, int list) {
    int sum = 0;
    for (int part = 0; part < PARTS; ++part) {
        int& entry = w.color_count()[list * PARTS + part];
        const int count = entry;
        entry = sum;
        sum += count;
    }
    w.color_size()[list] = sum;
}
GPUSIM_PHASE void start_colors(const World& w, int) {
    const int lists = w.max_colors() + 2;
    int next = 0;
    for (int list = 0; list < lists; ++list) {
        w.color_first()[list] = next;
        mark_unused_lanes(w, list);
        next += round_up_to_lanes(w.color_size()[list]);
    }
    w.color_first()[lists] = next;
}
GPUSIM_PHASE void fill_colors(const World& w, int part) {
    const int count = *w.pair_count(), size = part_size(count), last = min_(count, (part + 1) * size);
    for (int m = part * size; m < last; ++m) {
        if (w.manifold_color()[m] == NO_CONTACT) continue;
        const int list = list_of(w, m), slot = w.color_first()[list] + w.color_count()[list * PARTS + part]++;
        w.record_index()[m] = slot;
        w.color_member()[slot] = m;
    }
}
GPUSIM_FN int list_size(const World& w, int list) { return w.color_size()[list]; }
GPUSIM_FN int overflow_size(const World& w) { return list_size(w, w.max_colors()); }
GPUSIM_FN int articulated_size(const World& w) { return list_size(w, w.max_colors() + 1); }
GPUSIM_FN int list_member(const World& w, int list, int i) { return w.color_member()[w.color_first()[list] + i]; }
// List the sides of overflow manifolds on each body in ascending order, with one thread.
GPUSIM_PHASE void list_overflow(const World& w, int) {
    const int count = overflow_size(w);
    if (!count) return;
    int* start = w.part_start();
    for (int b = 0; b <= w.bodies(); ++b) start[b] = 0;
    for (int i = 0; i < 2 * count; ++i) start[side_body(w, list_member(w, w.max_colors(), i / 2), i % 2) + 1] += 1;
    for (int b = 0; b < w.bodies(); ++b) {
        w.body_parts()[b] = start[b + 1];
        start[b + 1] += start[b];
    }
    for (int i = 0; i < 2 * count; ++i) {
        const int m = list_member(w, w.max_colors(), i / 2);
        w.part_side()[start[side_body(w, m, i % 2)]++] = 2 * m + i % 2;
    }
    for (int b = w.bodies(); b > 0; --b) start[b] = start[b - 1];
    start[0] = 0;
}
// List the sides of overflow manifolds with many threads: count the sides, add them in any order, and sort them.
GPUSIM_PHASE void clear_overflow(const World& w, int b) {
    if (overflow_size(w)) w.part_start()[b] = w.incident_cursor()[b] = 0;
}
GPUSIM_PHASE void count_overflow(const World& w, int i) {
    if (i < 2 * overflow_size(w)) count_one(w.part_start() + side_body(w, list_member(w, w.max_colors(), i / 2), i % 2));
}
GPUSIM_PHASE void scan_overflow_part(const World& w, int part) {
    if (overflow_size(w)) scan_part(w, w.part_start(), w.bodies() + 1, part);
}
GPUSIM_PHASE void scan_overflow_rest(const World& w, int part) {
    if (overflow_size(w)) scan_rest(w, w.part_start(), w.bodies() + 1, part);
}
GPUSIM_PHASE void enter_overflow(const World& w, int i) {
    if (i >= 2 * overflow_size(w)) return;
    const int m = list_member(w, w.max_colors(), i / 2), b = side_body(w, m, i % 2);
    w.part_side()[w.part_start()[b] + take_number(w.incident_cursor() + b)] = 2 * m + i % 2;
}
GPUSIM_PHASE void sort_overflow(const World& w, int b) {
    if (!overflow_size(w)) return;
    const int first = w.part_start()[b];
    w.body_parts()[b] = w.part_start()[b + 1] - first;
    sort_numbers(w.part_side() + first, w.body_parts()[b]);
}
// Return the number of parts into which mass splitting divides body b for manifold m.
GPUSIM_FN real parts_of(const World& w, int m, int b) {
    return w.manifold_color()[m] == OVERFLOW ? real(max_(w.body_parts()[b], 1)) : real(1);
}
