// Islands: sets of touching bodies and their joints. Newton's method solves the contacts of each island separately
// (contact_newton.cuh, equations: gpusim/reference/contacts/contact_islands.py).
#pragma once
#include "../solve/contact_direct.cuh"

// Impulses of an island: ``first`` to ``end``.
struct Island {
    int number, first, end;
};
GPUSIM_FN Island island_at(const World& w, int number) {
    const int *slot = w.island_slot() + number, *start = w.condensed_start();
    return {number, start[slot[0]], start[slot[1]]};
}
// Return the number of manifolds in all islands.
GPUSIM_FN int condensed_size(const World& w) { return w.island_slot()[*w.island_count()]; }
GPUSIM_FN int condensed_member(const World& w, int n) { return w.condensed_member()[n]; }
// Return the index of manifold n in the list of articulated manifolds, or -1.
GPUSIM_FN int path_of(const World& w, int n) { return w.condensed_path()[n]; }
GPUSIM_FN bool has_path(const World& w, int n) { return path_of(w, n) >= 0; }
// Return the number of impulses of a manifold. If the law is not Coulomb's law, return a number above the capacity.
GPUSIM_FN int contact_numbers(const World& w, int m) {
    const ReadLane r = read_record(w, m);
    if (r[AT_LAW] != real(LAW_COULOMB)) return w.condensed_numbers() + 1;
    return 3 * int(r[AT_COUNT]) + (r[AT_SPINNING] > real(0)) + 2 * (r[AT_ROLLING] > real(0));
}
// Call ``call`` for each touching manifold with a color, articulated manifolds first. ``path`` is its index in the list
// of articulated manifolds, or -1.
template <class F> GPUSIM_FN void each_touching(const World& w, F call) {
    for (int list = -1; list < w.max_colors(); ++list) {
        const int size = list < 0 ? articulated_size(w) : list_size(w, list);
        for (int i = 0; i < size; ++i)
            call(list < 0 ? articulated_member(w, i) : list_member(w, list, i), list < 0 ? i : -1);
    }
}
GPUSIM_FN void enter_condensed(const World& w, int slot, int m, int path, int island, int number) {
    w.condensed_member()[slot] = m;
    w.condensed_path()[slot] = path;
    w.condensed_island()[slot] = island;
    w.condensed_start()[slot] = number;
}
// End the list of islands. ``slots`` manifolds have ``numbers`` impulses.
GPUSIM_FN void end_islands(const World& w, int islands, int slots, int numbers, int largest) {
    w.island_slot()[islands] = slots;
    w.condensed_start()[slots] = numbers;
    *w.island_count() = islands;
    *w.island_largest() = largest;
}
// Make one island of all manifolds, unless the capacity is too small.
GPUSIM_FN void list_one_island(const World& w) {
    int slots = 0, end = 0;
    each_touching(w, [&](int m, int path) {
        enter_condensed(w, slots++, m, path, 0, end);
        end = min_(end + contact_numbers(w, m), w.condensed_numbers() + 1);
    });
    if (end <= w.condensed_numbers()) end_islands(w, 1, slots, end, slots);
}
// Rows of island_table. A node is the root of an elimination tree, or a body without joints. AT_NEXT and AT_NUMBER are
// counts, and then the next slot and impulse.
enum { AT_PARENT, AT_NEXT, AT_NUMBER, AT_ISLAND };
enum { ISLAND_NEW = -1, ISLAND_SWEPT = -2 };
GPUSIM_FN int* nodes_at(const World& w, int row) { return w.island_table() + row * w.island_nodes(); }
GPUSIM_FN int find_node(const World& w, int m) {
    int* parent = nodes_at(w, AT_PARENT);
    int found = -1;
    for (int side = 0; side < 2; ++side) {
        const int body = side_body(w, m, side), end = w.body_path_start()[body + 1];
        if (!w.dynamic()[body]) continue;
        int node = end > w.body_path_start()[body] ? w.body_path()[end - 1] : w.constraints() + body;
        while (parent[node] != node) node = parent[node] = parent[parent[node]];
        if (found >= 0) parent[max_(found, node)] = min_(found, node);
        found = found < 0 ? node : min_(found, node);
    }
    return found;
}
// An island that is too large, or has other laws than Coulomb's law, is not listed. If ``all`` is false, islands without
// joints are not listed either.
GPUSIM_FN void list_islands(const World& w, bool all) {
    int *next = nodes_at(w, AT_NEXT), *number = nodes_at(w, AT_NUMBER), *island = nodes_at(w, AT_ISLAND);
    for (int k = 0; k < w.island_nodes(); ++k) {
        nodes_at(w, AT_PARENT)[k] = k;
        next[k] = number[k] = 0;
        island[k] = ISLAND_NEW;
    }
    each_touching(w, [&](int m, int) { find_node(w, m); });
    each_touching(w, [&](int m, int) {
        const int node = find_node(w, m);
        next[node] += 1;
        number[node] = min_(number[node] + contact_numbers(w, m), w.condensed_numbers() + 1);
    });
    int islands = 0, slots = 0, end = 0, largest = 0;
    each_touching(w, [&](int m, int path) {
        const int node = find_node(w, m), numbers = number[node];
        if (island[node] == ISLAND_NEW) {
            const bool fits = (all || path >= 0) && numbers <= w.condensed_numbers() && end + numbers <= w.condensed_total();
            island[node] = fits ? islands : int(ISLAND_SWEPT);
            if (fits) {
                const int size = next[node];
                w.island_slot()[islands++] = next[node] = slots;
                largest = max_(largest, size);
                number[node] = end;
                slots += size;
                end += numbers;
            }
        }
        if (path >= 0) w.path_island()[path] = island[node];
        if (island[node] < 0) return;
        enter_condensed(w, next[node]++, m, path, island[node], number[node]);
        number[node] += contact_numbers(w, m);
    });
    end_islands(w, islands, slots, end, largest);
}
// List the manifolds that Newton's method solves. There is no island if some manifolds have no color. In worlds with many
// contacts, one thread would need too long to find the islands.
GPUSIM_PHASE void condense_list(const World& w, int) {
    *w.condensed_fits() = *w.condensed_failed() = *w.island_count() = w.island_slot()[0] = 0;
    if (articulated_size(w) == 0 || overflow_size(w)) return;
    const bool few = *w.touching() < w.condensed_slots();
    if (w.island_nodes() && (few || !w.incident_slots())) list_islands(w, few);
    else if (few) list_one_island(w);
}
// Mark R as invalid, because R depends on the factor.
GPUSIM_PHASE void forget_condensed(const World& w, int) { *w.condensed_fits() = 0; }
GPUSIM_FN bool condenses(const World& w) { return !*w.done() && *w.island_count() > 0 && !*w.condensed_failed(); }
// Return whether Newton's method has solved the n-th articulated manifold in this pass, but not all islands.
GPUSIM_FN bool solved_by_newton(const World& w, int n) {
    if (!w.island_nodes() || !*w.condensed_failed()) return false;
    const int island = w.path_island()[n];
    return island >= 0 && !w.island_failed()[island];
}
