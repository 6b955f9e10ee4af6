// Stage broad_phase: find close pairs of shapes, in ascending order
// (gpusim/reference/contacts/broad_phase.py). For up to 64 shapes, a list contains all pairs that may touch. For more
// shapes, the kernels use a grid. The cells of the grid are buckets of a hash table. The kernels first count the pairs
// and then write the pairs, so the order does not depend on threads.
#pragma once
#include "../collide/support.cuh"
#include "../solve/positions.cuh"
#include "shape_tables.cuh"

template <class T> GPUSIM_FN void copy_numbers(const T* from, T* to, int count) {
    for (int k = 0; k < count; ++k) to[k] = from[k];
}
template <class T> GPUSIM_FN void clear_numbers(T* to, int count) {
    for (int k = 0; k < count; ++k) to[k] = T(0);
}
GPUSIM_FN double step_time(const World& w) { return w.h * w.substeps(); }

// Get shape i with its world pose for the narrow phase.
GPUSIM_FN void load_shape(const World& w, int i, Shape& s) {
    describe_shape(w, i, s);
    for (int k = 0; k < 3; ++k) s.center[k] = w.shape_position()[3 * i + k];
    for (int k = 0; k < 9; ++k) s.rotation[k] = w.shape_rotation()[9 * i + k];
}
#if GPUSIM_SHAPES > 2
// Compute the bounds of a triangle mesh. ``size`` contains the box of the mesh.
GPUSIM_FN void mesh_bounds(const Shape& s, double* lower, double* upper) {
    for (int k = 0; k < 3; ++k) {
        double middle = s.center[k], half_extent = 0.0;
        for (int j = 0; j < 3; ++j) {
            middle = middle + s.rotation[3 * k + j] * (0.5 * (s.size[j] + s.size[3 + j]));
            half_extent = half_extent + abs_(s.rotation[3 * k + j]) * (0.5 * (s.size[3 + j] - s.size[j]));
        }
        lower[k] = middle - half_extent;
        upper[k] = middle + half_extent;
    }
}
#endif
// Compute the bounds of a shape. For a height field, size[5] and size[6] are the lowest and the highest point.
GPUSIM_FN void bounds_of(const Shape& s, double* lower, double* upper) {
#if GPUSIM_SHAPES > 2
    if (s.kind == SHAPE_TRIANGLE_MESH) return mesh_bounds(s, lower, upper);
#endif
    if (s.kind != SHAPE_HEIGHT_FIELD) return shape_bounds(s, lower, upper);
    const double x = 0.5 * (s.size[0] - 1.0) * s.size[2], y = 0.5 * (s.size[1] - 1.0) * s.size[3];
    rotated_box_bounds(s, x, y, s.size[5], s.size[6], lower, upper);
}
// Return the margin of shape i's bounding box: half the contact margin, plus the motion of the body in a step.
GPUSIM_FN double shape_margin_of(const World& w, int i, int b) {
    const double time = step_time(w), margin = 0.5 * w.contact_margin();
    double velocity[3], momentum[3];
    copy3(w.linear_velocity() + 3 * b, velocity);
    copy3(w.angular_momentum() + 3 * b, momentum);
    double rate[3];
    rotate_back3(w.rotation() + 9 * b, momentum, rate);
    double inverse[9];
    for (int k = 0; k < 9; ++k) inverse[k] = double(w.inertia_inverse_body()[9 * b + k]);
    rotate3(inverse, rate, rate);
    const double spin = norm3(rate), max_arm = norm3(w.shape_center() + 3 * i) + w.shape_radius()[i];
    const double surface_speed = spin > 0.0 && max_arm < UNBOUNDED ? spin * max_arm : 0.0;
    const double fall = w.dynamic()[b] ? abs_(w.gravity_scale()[b]) * norm3(w.gravity()) * time : 0.0;
    return margin + time * (norm3(velocity) + surface_speed + fall);
}

GPUSIM_FN int bucket_of(const World& w, const int* cell) {
    const unsigned x = unsigned(cell[0]) * 73856093u, y = unsigned(cell[1]) * 19349663u, z = unsigned(cell[2]) * 83492791u;
    return int((x ^ y ^ z) & unsigned(w.buckets() - 1));
}
// Return the index of a grid cell, clamped to the range of int32.
GPUSIM_FN int cell_index(double x) {
    const double bounded = clamped(x, -1e9, 1e9);
    const int down = int(bounded);
    return double(down) > bounded ? down - 1 : down;
}
// Return whether a shape is larger than a cell. An extra bucket at the end contains the large shapes.
GPUSIM_FN bool is_large(const World& w, int i) {
    bool large = false;
    for (int k = 0; k < 3; ++k) large |= !(w.fat_upper()[3 * i + k] - w.fat_lower()[3 * i + k] <= w.grid_cell()[0]);
    return large;
}
GPUSIM_FN int shape_bucket(const World& w, int i) { return is_large(w, i) ? w.buckets() : bucket_of(w, w.shape_cell() + 3 * i); }

GPUSIM_FN void pose_shape(const World& w, int i) {
    const int b = w.shape_body()[i];
    double arm[3], copy[9], *position = w.shape_position() + 3 * i;
    const double* rotation = load_matrix(w.rotation(), b, copy);
    rotate3(rotation, w.shape_center() + 3 * i, arm);
    for (int k = 0; k < 3; ++k) position[k] = w.position()[3 * b + k] + arm[k];
    product33(rotation, w.shape_frame() + 9 * i, w.shape_rotation() + 9 * i);
}
// Item: a shape.
GPUSIM_PHASE void locate_shape(const World& w, int i) {
    const int b = w.shape_body()[i];
    double *lower = w.shape_lower() + 3 * i, *upper = w.shape_upper() + 3 * i;
    pose_shape(w, i);
    Shape s;
    load_shape(w, i, s);
    bounds_of(s, lower, upper);
    const double margin = shape_margin_of(w, i, b);
    w.shape_margin()[i] = margin;
    for (int k = 0; k < 3; ++k) {
        lower[k] -= margin;
        upper[k] += margin;
    }
    if (!w.buckets()) return;
    const double *wide_lower = w.fat_lower() + 3 * i, *wide_upper = w.fat_upper() + 3 * i;
    bool within = true;
    for (int k = 0; k < 3; ++k) within = within && lower[k] >= wide_lower[k] && upper[k] <= wide_upper[k];
    if (!within) set_flag(w.searching());
}
// The grid search uses wide boxes, enlarged by a fraction of a cell. The result is valid until a shape leaves its wide
// box, or until another world uses the slab.
GPUSIM_PHASE void start_search(const World& w, int) { *w.searching() = *w.search_owner() != w.id + 1; }
GPUSIM_PHASE void widen_shape(const World& w, int i) {
    const double widening = WIDER * w.grid_cell()[0];
    for (int k = 3 * i; k < 3 * i + 3; ++k) {
        const double lower = w.shape_lower()[k] - widening, upper = w.shape_upper()[k] + widening;
        w.fat_lower()[k] = lower;
        w.fat_upper()[k] = upper;
        w.shape_cell()[k] = cell_index((lower + upper) * 0.5 / w.grid_cell()[0]);
    }
}
GPUSIM_PHASE void clear_bucket(const World& w, int k) { w.bucket_start()[k] = w.bucket_cursor()[k] = 0; }
GPUSIM_PHASE void count_member(const World& w, int i) { count_one(w.bucket_start() + shape_bucket(w, i)); }
GPUSIM_PHASE void enter_bucket(const World& w, int i) {
    const int bucket = shape_bucket(w, i);
    w.bucket_shape()[w.bucket_start()[bucket] + take_number(w.bucket_cursor() + bucket)] = i;
}
GPUSIM_SHARED void sort_numbers(int* list, int count) {
    int* numbers = in_slab(list);
    for (int n = 1; n < count; ++n) {
        const int value = numbers[n];
        int at = n;
        for (; at > 0 && numbers[at - 1] > value; --at) numbers[at] = numbers[at - 1];
        numbers[at] = value;
    }
}
// Sort the shapes of a bucket, because threads add shapes in arbitrary order.
GPUSIM_PHASE void sort_bucket(const World& w, int k) {
    sort_numbers(w.bucket_shape() + w.bucket_start()[k], w.bucket_start()[k + 1] - w.bucket_start()[k]);
}

// Compute prefix sums of ``count`` integers in three phases: the sums of SCAN_PARTS parts, the prefix sums over the
// parts, and the prefix sums inside each part.
#if defined(GPUSIM_ONE_THREAD)
#define SCAN_PARTS 1
#else
#define SCAN_PARTS PARTS
#endif
GPUSIM_FN int scan_size(int count) { return (count + SCAN_PARTS - 1) / SCAN_PARTS; }
GPUSIM_FN void scan_part(const World& w, const int* list, int count, int part) {
    const int size = scan_size(count), last = min_(count, (part + 1) * size);
    int sum = 0;
    for (int n = part * size; n < last; ++n) sum += list[n];
    w.scan_sum()[part] = sum;
}
GPUSIM_FN void scan_rest(const World& w, int* list, int count, int part) {
    const int size = scan_size(count), last = min_(count, (part + 1) * size);
    int sum = w.scan_sum()[part];
    for (int n = part * size; n < last; ++n) {
        const int value = list[n];
        list[n] = sum;
        sum += value;
    }
}
GPUSIM_PHASE void scan_sums(const World& w, int) {
    int sum = 0;
    // all other parts are empty
    const int parts = min_(SCAN_PARTS, max_(w.bodies() + 1, max_(w.shape_slots(), w.bucket_slots())));
    for (int part = 0; part < parts; ++part) {
        const int value = w.scan_sum()[part];
        w.scan_sum()[part] = sum;
        sum += value;
    }
}
GPUSIM_PHASE void scan_bucket_part(const World& w, int part) { scan_part(w, w.bucket_start(), w.bucket_slots(), part); }
GPUSIM_PHASE void scan_bucket_rest(const World& w, int part) { scan_rest(w, w.bucket_start(), w.bucket_slots(), part); }
GPUSIM_PHASE void scan_pair_part(const World& w, int part) { scan_part(w, w.pair_start(), w.shape_slots(), part); }
GPUSIM_PHASE void scan_pair_rest(const World& w, int part) { scan_rest(w, w.pair_start(), w.shape_slots(), part); }

// Return the index of b in the sorted list of shape a, or -1.
GPUSIM_FN int find_in_list(const int* start, const int* list, int a, int b) {
    const int last = start[a + 1];
    int first = start[a], end = last;
    while (first < end) {
        const int middle = (first + end) / 2;
        if (list[middle] < b) first = middle + 1;
        else end = middle;
    }
    return first < last && list[first] == b ? first : -1;
}
GPUSIM_FN bool may_touch(const World& w, int a, int b) {
    const int body_a = w.shape_body()[a], body_b = w.shape_body()[b];
    if (body_a == body_b || !(w.dynamic()[body_a] || w.dynamic()[body_b])) return false;
    if (find_in_list(w.include_start(), w.include(), a, b) >= 0) return true;
    if (!(w.shape_group()[a] & w.shape_mask()[b]) || !(w.shape_group()[b] & w.shape_mask()[a])) return false;
    return find_in_list(w.exclude_start(), w.exclude(), a, b) < 0;
}
// Return the maximum number of manifolds of a pair. The list of candidates contains one entry for each manifold.
GPUSIM_FN int pair_slots(const World& w, int a, int b) {
    return w.split_pairs() ? max_(w.shape_manifolds()[a], w.shape_manifolds()[b]) : 1;
}
// Bounding boxes of shapes in this step, or the wide boxes.
struct Boxes {
    const double *lower, *upper;
};
GPUSIM_FN Boxes close_boxes(const World& w) { return Boxes{w.shape_lower(), w.shape_upper()}; }
GPUSIM_FN bool overlap(const Boxes& boxes, int a, int b) {
    const double *low = in_slab(boxes.lower), *up = in_slab(boxes.upper);
    const double *low_a = low + 3 * a, *up_a = up + 3 * a, *low_b = low + 3 * b, *up_b = up + 3 * b;
    return low_a[0] <= up_b[0] && low_b[0] <= up_a[0] && low_a[1] <= up_b[1] && low_b[1] <= up_a[1] &&
           low_a[2] <= up_b[2] && low_b[2] <= up_a[2];
}
// Sorted list of a shape's partners. ``out`` stores the first ``capacity`` partners, ``stride`` numbers apart.
struct Partners {
    int shape, count, capacity, stride;
    int* out;
    Boxes boxes;
};
GPUSIM_FN void insert_partner(Partners& p, int other) {
    int at = p.count++;
    if (at >= p.capacity) {
        if (!p.capacity || p.out[p.stride * (p.capacity - 1)] < other) return;
        at = p.capacity - 1;
    }
    for (; at > 0 && p.out[p.stride * (at - 1)] > other; --at) p.out[p.stride * at] = p.out[p.stride * (at - 1)];
    p.out[p.stride * at] = other;
}
GPUSIM_FN void add_partner(const World& w, Partners& p, int other) {
    if (!overlap(p.boxes, p.shape, other) || !(w.buckets() == 0 || may_touch(w, p.shape, other))) return;
    const int slots = w.buckets() ? pair_slots(w, p.shape, other) : 1;
    for (int k = 0; k < slots; ++k) insert_partner(p, other);
}
GPUSIM_FN void search_bucket(const World& w, Partners& p, int bucket, const int* cell) {
    for (int n = w.bucket_start()[bucket]; n < w.bucket_start()[bucket + 1]; ++n) {
        const int other = w.bucket_shape()[n], *at = w.shape_cell() + 3 * other;
        if (other <= p.shape || (cell && (at[0] != cell[0] || at[1] != cell[1] || at[2] != cell[2]))) continue;
        add_partner(w, p, other);
    }
}
GPUSIM_FN void search_grid(const World& w, Partners& p) {
    const int i = p.shape, *center = w.shape_cell() + 3 * i;
    if (is_large(w, i)) {
        for (int other = i + 1; other < w.shapes(); ++other) add_partner(w, p, other);
        return;
    }
    search_bucket(w, p, w.buckets(), nullptr);
    for (int x = -1; x <= 1; ++x)
        for (int y = -1; y <= 1; ++y)
            for (int z = -1; z <= 1; ++z) {
                const int cell[3] = {center[0] + x, center[1] + y, center[2] + z};
                search_bucket(w, p, bucket_of(w, cell), cell);
            }
}
GPUSIM_SHARED int find_partners(const World& w, int i, Boxes boxes, int* out, int capacity, int stride) {
    Partners p{i, 0, capacity, stride, in_slab(out), boxes};
    if (w.buckets()) search_grid(w, p);
    else
        for (int n = w.candidate_start()[i]; n < w.candidate_start()[i + 1]; ++n) add_partner(w, p, w.candidate()[n]);
    return p.count;
}
// Return the number of large shapes, at most LARGE. In models with many shapes, SCAN_PARTS threads search the partners
// of each large shape.
GPUSIM_FN int large_shapes(const World& w) {
    if (!w.large_parts()) return 0;
    return min_(w.bucket_start()[w.buckets() + 1] - w.bucket_start()[w.buckets()], LARGE);
}
GPUSIM_FN int large_shape(const World& w, int n) { return w.bucket_shape()[w.bucket_start()[w.buckets()] + n]; }
// Return the index of a shape in the list of large shapes, or -1.
GPUSIM_FN int large_index(const World& w, int i) {
    const int count = large_shapes(w);
    for (int n = 0; n < count; ++n)
        if (large_shape(w, n) == i) return n;
    return -1;
}
GPUSIM_FN int large_items(const World& w) { return large_shapes(w) * SCAN_PARTS; }
// Find the partners of a large shape in one part of the shapes. Return the number of list entries, and write the first
// ``capacity`` entries.
GPUSIM_FN int large_partners(const World& w, int item, int* out, int capacity) {
    const int i = large_shape(w, item / SCAN_PARTS), size = scan_size(w.shapes()), first = item % SCAN_PARTS * size;
    const Boxes boxes = close_boxes(w);
    int count = 0;
    for (int other = max_(i + 1, first); other < min_(w.shapes(), first + size); ++other) {
        if (!overlap(boxes, i, other) || !may_touch(w, i, other)) continue;
        for (int k = pair_slots(w, i, other); k > 0; --k, ++count) {
            if (count >= capacity) continue;
            out[2 * count] = i;
            out[2 * count + 1] = other;
        }
    }
    return count;
}
GPUSIM_PHASE void count_large(const World& w, int item) {
    if (item < large_items(w)) w.large_count()[item] = large_partners(w, item, static_cast<int*>(nullptr), 0);
}
GPUSIM_PHASE void list_large(const World& w, int item) {
    if (item >= large_items(w)) return;
    int slot = w.pair_start()[large_shape(w, item / SCAN_PARTS)];
    for (int before = item - item % SCAN_PARTS; before < item; ++before) slot += w.large_count()[before];
    if (slot < w.pairs()) large_partners(w, item, w.pair_shapes() + 2 * slot, w.pairs() - slot);
}
// Item: a shape. Find the shapes with higher indices whose wide boxes overlap the wide box of this shape.
GPUSIM_PHASE void find_neighbors(const World& w, int i) {
    if (large_index(w, i) >= 0) return;
    w.neighbor_count()[i] = find_partners(w, i, Boxes{w.fat_lower(), w.fat_upper()}, w.neighbor_shape() + PARTNERS * i, PARTNERS, 1);
}
// Find the close shapes with higher indices. Return the number of list entries, and write the first ``capacity``
// entries.
GPUSIM_FN int close_partners(const World& w, int i, int* out, int capacity) {
    const Boxes boxes = close_boxes(w);
    int count = 0;
    if (!w.buckets() || w.neighbor_count()[i] > PARTNERS) {
        count = find_partners(w, i, boxes, out + 1, capacity, 2);
        for (int n = 0; n < min_(count, capacity); ++n) out[2 * n] = i;
        return count;
    }
    for (int n = 0; n < w.neighbor_count()[i]; ++n) {
        const int other = w.neighbor_shape()[PARTNERS * i + n];
        if (!overlap(boxes, i, other)) continue;
        if (count < capacity) {
            out[2 * count] = i;
            out[2 * count + 1] = other;
        }
        ++count;
    }
    return count;
}
// Item: a shape, or the end of the list.
GPUSIM_PHASE void count_pairs(const World& w, int i) {
    const int large = i < w.touchable() ? large_index(w, i) : -1;
    int count = 0;
    if (large >= 0)
        for (int part = 0; part < SCAN_PARTS; ++part) count += w.large_count()[large * SCAN_PARTS + part];
    else if (i < w.touchable()) count = close_partners(w, i, static_cast<int*>(nullptr), 0);
    w.pair_start()[i] = count;
}
GPUSIM_PHASE void list_pairs(const World& w, int i) {
    if (large_index(w, i) >= 0) return;
    const int first = w.pair_start()[i], capacity = min_(w.pair_start()[i + 1] - first, w.pairs() - first);
    if (capacity > 0) close_partners(w, i, w.pair_shapes() + 2 * first, capacity);
}
GPUSIM_PHASE void count_close(const World& w, int) {
    const int found = w.pair_start()[w.touchable()], capacity = w.pairs();
    *w.substep() = 0;
    *w.search_owner() = w.id + 1;
    *w.pair_count() = min_(found, capacity);
    *w.pair_peak() = max_(*w.pair_peak(), found);
    if (found <= capacity) return;
    *w.pair_overflow() += found - capacity;
    count_one(in_global(w.args()->overflowed));
}
