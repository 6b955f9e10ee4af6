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

// A number of a slab: where slabs are in shared memory by how far it is from the beginning, so that the compiler knows
// where it is. (Told by an assumption that it is there, NVRTC 12.9 drops the code.)
template <class T> struct InSlab {
#if GPUSIM_GPU && GPUSIM_SHARED_SLAB
    int at;
    static MEMBER T* start() { return reinterpret_cast<T*>(shared_slab); }
    static MEMBER InSlab of(T* p) { return {int(p - start())}; }
    MEMBER T& operator[](int k) const { return start()[at + k]; }
    MEMBER InSlab operator+(int k) const { return {at + k}; }
#else
    T* at;
    static MEMBER InSlab of(T* p) { return {p}; }
    MEMBER T& operator[](int k) const { return in_global(at)[k]; }
    MEMBER InSlab operator+(int k) const { return {at + k}; }
#endif
};
// One record: its numbers stand LANES apart.
struct Lane {
    InSlab<real> first;
    MEMBER real& operator[](int k) const { return first[LANES * k]; }
    MEMBER Lane operator+(int k) const { return {first + LANES * k}; }
};
struct ReadLane {
    InSlab<const real> first;
    MEMBER const real& operator[](int k) const { return first[LANES * k]; }
    MEMBER ReadLane operator+(int k) const { return {first + LANES * k}; }
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
