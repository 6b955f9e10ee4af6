// Six numbers side by side, for blocks of six rows on a CPU: four and two in vectors. Every operation is that of each
// number alone, in the order of the plain loops. So the bits are the same.
#pragma once
#include "platform.cuh"

// On a CPU one item is a whole block. A GPU has enough threads for one item per number.
#if GPUSIM_GPU || defined(GPUSIM_TEAM) || defined(GPUSIM_PLAIN)
#define WHOLE_BLOCKS 0
#else
#define WHOLE_BLOCKS 1
template <class T> struct Six {
    typedef T Four __attribute__((vector_size(4 * sizeof(T)), aligned(alignof(T)), may_alias));
    typedef T Two __attribute__((vector_size(2 * sizeof(T)), aligned(alignof(T)), may_alias));
    Four a;
    Two b;
    static MEMBER Six load(const T* from) {
        return {*reinterpret_cast<const Four*>(from), *reinterpret_cast<const Two*>(from + 4)};
    }
    // Load numbers that are six apart: a column of a block.
    static MEMBER Six column(const T* from) {
        return {Four{from[0], from[6], from[12], from[18]}, Two{from[24], from[30]}};
    }
    static MEMBER Six zero() { return {Four{}, Two{}}; }
    MEMBER void store(T* to) const {
        *reinterpret_cast<Four*>(to) = a;
        *reinterpret_cast<Two*>(to + 4) = b;
    }
    MEMBER T get(int k) const { return k < 4 ? a[k] : b[k - 4]; }
    MEMBER void set(int k, T x) {
        if (k < 4)
            a[k] = x;
        else
            b[k - 4] = x;
    }
    MEMBER Six operator+(Six o) const { return {a + o.a, b + o.b}; }
    MEMBER Six operator-(Six o) const { return {a - o.a, b - o.b}; }
    MEMBER Six operator*(T x) const { return {a * x, b * x}; }
    MEMBER Six operator*(Six o) const { return {a * o.a, b * o.b}; }
};
// The first three of six numbers in each row. The others are zero.
template <class T> struct Three {
    typedef typename Six<T>::Four Values;
    Values a;
    static MEMBER Three load(const T* from) { return {*reinterpret_cast<const Values*>(from)}; }
    static MEMBER Three column(const T* from) { return {Values{from[0], from[6], from[12], T(0)}}; }
    static MEMBER Three zero() { return {Values{}}; }
    MEMBER void store(T* to) const {
        *reinterpret_cast<Values*>(to) = a;
        to[4] = to[5] = T(0);
    }
    MEMBER Three operator+(Three o) const { return {a + o.a}; }
    MEMBER Three operator-(Three o) const { return {a - o.a}; }
    MEMBER Three operator*(T x) const { return {a * x}; }
};
#endif
