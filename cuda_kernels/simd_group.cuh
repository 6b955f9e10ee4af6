// Groups of WORLD_LANES worlds on a CPU. Wide phases (wide_phases.cuh) run for all worlds of a group at once. All other
// phases run world by world. Each world has a slab, and the group has vectors with the same arrays. The code copies an
// array between slabs and vectors only if a phase needs it.
#pragma once
#include "step.cuh"
#include "wide_phases.cuh"

struct GroupField {
    long long offset;  // in the slab of a world, in bytes
    int count, size;   // number of entries, and bytes per entry
};
#define GROUP_WORDS 2
// Set of arrays.
struct GroupSet {
    unsigned long long words[GROUP_WORDS];
    MEMBER GroupSet& operator|=(const GroupSet& o) {
        for (int k = 0; k < GROUP_WORDS; ++k) words[k] |= o.words[k];
        return *this;
    }
    MEMBER GroupSet without(const GroupSet& o) const {
        GroupSet out = *this;
        for (int k = 0; k < GROUP_WORDS; ++k) out.words[k] &= ~o.words[k];
        return out;
    }
    template <class F> MEMBER void each(F call) const {
        for (int k = 0; k < GROUP_WORDS; ++k)
            for (unsigned long long remaining = words[k]; remaining; remaining &= remaining - 1) call(64 * k + __builtin_ctzll(remaining));
    }
};

#ifdef __AVX2__
// Transpose four arrays of four 8-byte numbers.
GPUSIM_FN void transpose_fours(const double* const* from, double* const* to) {
    const __m256d a = _mm256_loadu_pd(from[0]), b = _mm256_loadu_pd(from[1]);
    const __m256d c = _mm256_loadu_pd(from[2]), d = _mm256_loadu_pd(from[3]);
    const __m256d even = _mm256_unpacklo_pd(a, b), more_even = _mm256_unpacklo_pd(c, d);
    const __m256d odd = _mm256_unpackhi_pd(a, b), more_odd = _mm256_unpackhi_pd(c, d);
    _mm256_storeu_pd(to[0], _mm256_permute2f128_pd(even, more_even, 0x20));
    _mm256_storeu_pd(to[1], _mm256_permute2f128_pd(odd, more_odd, 0x20));
    _mm256_storeu_pd(to[2], _mm256_permute2f128_pd(even, more_even, 0x31));
    _mm256_storeu_pd(to[3], _mm256_permute2f128_pd(odd, more_odd, 0x31));
}
// Copy numbers in blocks of four. Return the number of copied numbers.
GPUSIM_FN int fours_to_vectors(char* const* lanes, double* vectors, int count) {
    for (int i = 0; i + 4 <= count; i += 4)
        for (int l = 0; l < WORLD_LANES; l += 4) {
            const double* from[4];
            double* to[4];
            for (int k = 0; k < 4; ++k) {
                from[k] = reinterpret_cast<const double*>(lanes[l + k]) + i;
                to[k] = vectors + WORLD_LANES * (i + k) + l;
            }
            transpose_fours(from, to);
        }
    return count & ~3;
}
GPUSIM_FN int fours_to_numbers(const double* vectors, char* const* lanes, int count) {
    for (int i = 0; i + 4 <= count; i += 4)
        for (int l = 0; l < WORLD_LANES; l += 4) {
            const double* from[4];
            double* to[4];
            for (int k = 0; k < 4; ++k) {
                from[k] = vectors + WORLD_LANES * (i + k) + l;
                to[k] = reinterpret_cast<double*>(lanes[l + k]) + i;
            }
            transpose_fours(from, to);
        }
    return count & ~3;
}
#else
GPUSIM_FN int fours_to_vectors(char* const*, double*, int) { return 0; }
GPUSIM_FN int fours_to_numbers(const double*, char* const*, int) { return 0; }
#endif
GPUSIM_FN int fours_to_vectors(char* const*, int*, int) { return 0; }
GPUSIM_FN int fours_to_numbers(const int*, char* const*, int) { return 0; }
template <class T> GPUSIM_FN void numbers_to_vectors(char* const* from, T* to, int count) {
    for (int i = fours_to_vectors(from, to, count); i < count; ++i)
        for (int l = 0; l < WORLD_LANES; ++l) to[WORLD_LANES * i + l] = reinterpret_cast<const T*>(from[l])[i];
}
template <class T> GPUSIM_FN void vectors_to_numbers(const T* from, char* const* to, int count) {
    for (int i = fours_to_numbers(from, to, count); i < count; ++i)
        for (int l = 0; l < WORLD_LANES; ++l) reinterpret_cast<T*>(to[l])[i] = from[WORLD_LANES * i + l];
}
template <class T, class F> GPUSIM_FN char* gather_parameter(int count, char* out, F get) {
    for (int l = 0; l < WORLD_LANES; ++l) {
        const T* from = get(l);
        for (int i = 0; i < count; ++i) reinterpret_cast<T*>(out)[WORLD_LANES * i + l] = from[i];
    }
    return out + 8ll * WORLD_LANES * count;
}

struct Group {
    World lane[WORLD_LANES];
    wide::World all;
    long long backup_offset;   // offset from an array of the group to its backup. Skipped worlds get the backup back
    unsigned running;  // bits of the existing worlds that have not failed
    GroupSet in_worlds, in_vectors;
    GroupField fields[64 * GROUP_WORDS];

    template <class F> MEMBER unsigned where(unsigned mask, F predicate) const {
        unsigned selected = 0;
        for (unsigned remaining = mask; remaining; remaining &= remaining - 1u) {
            const int l = __builtin_ctz(remaining);
            if (predicate(lane[l])) selected |= 1u << l;
        }
        return selected;
    }
    // Copy arrays from the slabs to the vectors, before wide phases read them.
    MEMBER void gather(const GroupSet& need) {
        need.without(in_vectors).each([this](int k) {
            char* from[WORLD_LANES];
            for (int l = 0; l < WORLD_LANES; ++l) from[l] = lane[l].base + fields[k].offset;
            char* to = all.array[k];
            if (fields[k].size == 8) numbers_to_vectors(from, reinterpret_cast<double*>(to), fields[k].count);
            else numbers_to_vectors(from, reinterpret_cast<int*>(to), fields[k].count);
        });
        in_vectors |= need;
    }
    // Copy arrays from the vectors to the slabs, before other phases read them.
    MEMBER void spread(const GroupSet& need) {
        need.without(in_worlds).each([this](int k) {
            char* to[WORLD_LANES];
            for (int l = 0; l < WORLD_LANES; ++l) to[l] = lane[l].base + fields[k].offset;
            const char* from = all.array[k];
            if (fields[k].size == 8) vectors_to_numbers(reinterpret_cast<const double*>(from), to, fields[k].count);
            else vectors_to_numbers(reinterpret_cast<const int*>(from), to, fields[k].count);
        });
        in_worlds |= need;
    }
    MEMBER void wrote_wide(const GroupSet& wrote) { in_worlds = in_worlds.without(wrote); }
    MEMBER void wrote_alone(const GroupSet& wrote) { in_vectors = in_vectors.without(wrote); }
    MEMBER void back_up(const GroupSet& wrote) const {
        wrote.each([this](int k) {
            std::memcpy(all.array[k] + backup_offset, all.array[k], (long long)WORLD_LANES * fields[k].count * fields[k].size);
        });
    }
    MEMBER void restore(const GroupSet& wrote, unsigned others) const {
        wrote.each([this, others](int k) {
            char *to = all.array[k], *from = to + backup_offset;
            if (fields[k].size == 8) take_lanes<double>(from, to, fields[k].count, others);
            else take_lanes<float>(from, to, fields[k].count, others);
        });
    }
    template <class T> static MEMBER void take_lanes(const char* from, char* to, int count, unsigned lanes) {
        const wide::Truth mask(lanes);
        const wide::Wide<T>* backup = reinterpret_cast<const wide::Wide<T>*>(from);
        wide::Wide<T>* out = reinterpret_cast<wide::Wide<T>*>(to);
        for (int i = 0; i < count; ++i) out[i] = choose(mask, backup[i], out[i]);
    }
};
#include "group.cuh"

// Return the size of the vectors of all arrays (bytes). Each array starts at a multiple of the vector size.
GPUSIM_FN long long vector_bytes(const GroupField* fields) {
    long long numbers = 0;
    for (int k = 0; k < WIDE_ARRAYS; ++k) numbers += fields[k].count;
    return 8ll * WORLD_LANES * numbers;
}
// Return the size of a group, in bytes: slabs, vectors, backups and parameters.
GPUSIM_FN long long group_size(const Arguments* a, const World& w) {
    GroupField fields[64 * GROUP_WORDS];
    find_fields(w, fields);
    return WORLD_LANES * (a->slab_bytes + 8 * parameter_numbers(w)) + 2 * vector_bytes(fields);
}
// Make a group of up to WORLD_LANES worlds, starting at world ``first``.
GPUSIM_FN void make_group(Group& g, const Arguments* a, double h, int first, char* base) {
    g.running = 0;
    for (int l = 0; l < WORLD_LANES; ++l) {
        const int id = first + l < a->n_worlds ? first + l : a->n_worlds - 1;
        g.lane[l] = make_world(a, h, id, base + l * a->slab_bytes, 0, 1);
        if (first + l < a->n_worlds && !a->health[id]) g.running |= 1u << l;
    }
    find_fields(g.lane[0], g.fields);
    g.all.a = a, g.all.h = h, g.backup_offset = vector_bytes(g.fields);
    char* at = base + WORLD_LANES * a->slab_bytes;
    for (int k = 0; k < WIDE_ARRAYS; at += 8ll * WORLD_LANES * g.fields[k++].count) g.all.array[k] = at;
    gather_parameters(g.lane, g.all.parameter, at + g.backup_offset);
    for (int k = 0; k < GROUP_WORDS; ++k) g.in_worlds.words[k] = ~0ull, g.in_vectors.words[k] = 0;
}
// Run steps of all worlds of a group, like run_world.
GPUSIM_PHASE void run_group(Group& g, int steps) {
    for (int l = 0; l < WORLD_LANES; ++l)
        if (g.running >> l & 1u) begin(g.lane[l], 0);
    for (int step = 0; step < steps && g.running; ++step) {
        group_contacts(g, g.running);
        for (int k = 0; k < g.lane[0].substeps(); ++k) group_substep(g, g.running);
        group_finish(g, g.running);
        g.spread(WIDE_KEPT);
        for (unsigned remaining = g.running; remaining; remaining &= remaining - 1u) {
            const World& w = g.lane[__builtin_ctz(remaining)];
            if (*w.cause() == NO_AXIS) {
                store_state(w);
                continue;
            }
            report_failure(w);
            g.running &= ~(1u << __builtin_ctz(remaining));
        }
    }
}
