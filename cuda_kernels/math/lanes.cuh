// Interleaved records of manifolds: number k of all GPUSIM_LANES records, then number k + 1 of all records.
// Threads of a GPU and vectors of a CPU therefore access adjacent memory. On a GPU, an item of a phase is one record.
// On a CPU, an item contains all lanes. Lanes are independent, so the bits do not depend on the number of lanes.
#pragma once
#include "world.cuh"
#include "block_rows.cuh"

#define LANES GPUSIM_LANES
#if GPUSIM_GPU || defined(GPUSIM_PLAIN) || GPUSIM_LANES == 1
#define ITEM_LANES 1
#else
#define ITEM_LANES GPUSIM_LANES
#endif

// Pointer into a slab. For shared memory, the pointer is an offset, so that the compiler knows the address space.
// Assumptions about the address space do not work: NVRTC 12.9 then deletes the code.
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
// One record. The distance between two numbers of a record is LANES.
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
// As many lanes of doubles as fit into the bytes of a vector.
typedef Vector<double> WideDouble;
#define DOUBLE_LANES (VECTOR_BYTES / int(sizeof(double)))
typedef Wide* Item;
template <> struct NumberOf<Wide*> { typedef Wide type; };
#endif
#define NUMBER(R) typename NumberOf<R>::type

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
// Read N numbers of a record. The index of the first number is even.
#if PAIRED && GPUSIM_LANES == 1
template <int N, class R> GPUSIM_FN void take_numbers(R from, real* out) { read_numbers<N>(&from[0], out); }
template <int N> GPUSIM_FN void put_numbers(const real* from, Lane out) { write_numbers<N>(from, &out[0]); }
#else
template <int N, class R, class T> GPUSIM_FN void take_numbers(R from, T* out) { take(from, N, out); }
template <int N, class R, class T> GPUSIM_FN void put_numbers(const T* from, R out) { put(from, N, out); }
#endif
