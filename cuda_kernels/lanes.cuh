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
    MEMBER real& operator[](int k) const { return at[LANES * k]; }
    MEMBER Lane operator+(int k) const { return Lane{at + LANES * k}; }
};
template <class R> struct NumberOf;
template <> struct NumberOf<Lane> { typedef real type; };
#if ITEM_LANES == 1
typedef Lane Item;
typedef double WideDouble;
#define DOUBLE_LANES 1
#else
#if defined(__AVX2__)
#include <immintrin.h>
#endif
typedef real Wide __attribute__((vector_size(LANES * sizeof(real))));
// As many bytes of double precision: a part of the lanes.
typedef double WideDouble __attribute__((vector_size(LANES * sizeof(real))));
#define DOUBLE_LANES int(sizeof(WideDouble) / sizeof(double))
typedef real Part __attribute__((vector_size(DOUBLE_LANES * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef decltype(Wide{} > Wide{}) WideMask;
typedef Wide* Item;
template <> struct NumberOf<Wide*> { typedef Wide type; };
#endif
#define NUMBER(R) typename NumberOf<R>::type

template <class M, class T> GPUSIM_FN T choose(M mask, T yes, T no) { return mask ? yes : no; }
GPUSIM_FN bool any(bool mask) { return mask; }
GPUSIM_FN real lane_of(real x, int) { return x; }
GPUSIM_FN void set_lane(real& x, int, real value) { x = value; }
GPUSIM_FN real greatest_lane(real x) { return x; }
// ``x`` in every lane.
template <class N> struct Every {
    static MEMBER N of(real x) { return N{} + x; }
};
template <> struct Every<real> {
    static MEMBER real of(real x) { return x; }
};
#if !(ITEM_LANES == 1)
GPUSIM_FN bool any(WideMask mask) {
    typedef long long Words __attribute__((vector_size(sizeof(Wide))));
    const Words words = reinterpret_cast<Words&>(mask);
    long long all = 0;
    for (unsigned k = 0; k < sizeof(Wide) / sizeof(long long); ++k) all |= words[k];
    return all != 0;
}
GPUSIM_FN real lane_of(const Wide& x, int lane) { return x[lane]; }
GPUSIM_FN void set_lane(Wide& x, int lane, real value) { x[lane] = value; }
GPUSIM_FN real greatest_lane(const Wide& x) {
    real most = x[0];
    for (int l = 1; l < LANES; ++l) most = larger(most, real(x[l]));
    return most;
}
// Compilers make single instructions of loops over square roots only where nobody may ask for errno.
#if defined(__AVX512F__)
GPUSIM_FN void roots64(float* x) { _mm512_storeu_ps(x, _mm512_sqrt_ps(_mm512_loadu_ps(x))); }
GPUSIM_FN void roots64(double* x) { _mm512_storeu_pd(x, _mm512_sqrt_pd(_mm512_loadu_pd(x))); }
#endif
#if defined(__AVX2__)
GPUSIM_FN void roots32(float* x) { _mm256_storeu_ps(x, _mm256_sqrt_ps(_mm256_loadu_ps(x))); }
GPUSIM_FN void roots32(double* x) { _mm256_storeu_pd(x, _mm256_sqrt_pd(_mm256_loadu_pd(x))); }
#endif
GPUSIM_FN Wide square_root(Wide x) {
    real* own = reinterpret_cast<real*>(&x);
    int l = 0;
#if defined(__AVX512F__)
    for (; l + 64 / int(sizeof(real)) <= LANES; l += 64 / int(sizeof(real))) roots64(own + l);
#endif
#if defined(__AVX2__)
    for (; l + 32 / int(sizeof(real)) <= LANES; l += 32 / int(sizeof(real))) roots32(own + l);
#endif
    for (; l < LANES; ++l) own[l] = square_root(own[l]);
    return x;
}
GPUSIM_FN Wide magnitude(Wide x) { return (x < real(0) ? -x : x) + real(0); }
#endif
template <class R, class N> GPUSIM_FN void take(R from, int count, N* out) {
    for (int k = 0; k < count; ++k) out[k] = from[k];
}
template <class R, class N> GPUSIM_FN void put(const N* from, int count, R out) {
    for (int k = 0; k < count; ++k) out[k] = from[k];
}
