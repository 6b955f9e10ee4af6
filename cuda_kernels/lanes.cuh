// Records of manifolds side by side: number k of GPUSIM_LANES records stands in a row of memory, then number k + 1, so
// that threads of a GPU, or the lanes of a CPU's vectors, read neighbors. What works on records is written once, over the
// number type of an item: a GPU's item is one record, a CPU's all lanes at once. Lanes do not mix, and every operation is
// that of one record, so the bits do not depend on their number.
#pragma once
#include "world.cuh"

#define LANES GPUSIM_LANES
#if GPUSIM_GPU || defined(GPUSIM_PLAIN) || GPUSIM_LANES == 1
#define ITEM_LANES 1
#else
#define ITEM_LANES GPUSIM_LANES
#endif

// One record: its numbers stand LANES apart.
struct Lane {
    real* at;
    MEMBER real& operator[](int k) const { return in_slab(at)[LANES * k]; }
    MEMBER Lane operator+(int k) const { return Lane{at + LANES * k}; }
};
struct ReadLane {
    const real* at;
    MEMBER const real& operator[](int k) const { return in_slab(at)[LANES * k]; }
    MEMBER ReadLane operator+(int k) const { return ReadLane{at + LANES * k}; }
};
template <class R> struct NumberOf;
template <> struct NumberOf<Lane> { typedef real type; };
template <> struct NumberOf<ReadLane> { typedef real type; };
#if ITEM_LANES == 1
typedef Lane Item;
typedef double WideDouble;
#define DOUBLE_LANES 1
#else
#include "vectors.cuh"
typedef Vector<real> Wide;
// As many bytes of double precision: a part of the lanes.
typedef Vector<double> WideDouble;
#define DOUBLE_LANES (VECTOR_BYTES / int(sizeof(double)))
typedef Wide* Item;
template <> struct NumberOf<Wide*> { typedef Wide type; };
#endif
#define NUMBER(R) typename NumberOf<R>::type

// ``x`` in every lane.
template <class N> struct Every {
    static MEMBER N of(real x) { return N::of(x); }
};
template <> struct Every<real> {
    static MEMBER real of(real x) { return x; }
};
GPUSIM_FN real lane_of(real x, int) { return x; }
GPUSIM_FN real greatest_lane(real x) { return x; }
GPUSIM_FN void whole_numbers(real x, int* out) { *out = int(x); }
template <class R, class N> GPUSIM_FN void take(R from, int count, N* out) {
    for (int k = 0; k < count; ++k) out[k] = from[k];
}
template <class R, class N> GPUSIM_FN void put(const N* from, int count, R out) {
    for (int k = 0; k < count; ++k) out[k] = from[k];
}
