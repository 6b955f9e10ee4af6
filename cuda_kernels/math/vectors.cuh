// CPU vectors. Each operation acts on each lane separately. With AVX-512, comparisons use mask registers. Compilers do
// not use mask registers for built-in vector types. Otherwise, a mask is a vector of integers.
#pragma once
#include "platform.cuh"

#define VECTOR_BYTES int(GPUSIM_LANES * sizeof(real))
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif
#if defined(__AVX512F__)
#define MASK_REGISTERS (GPUSIM_LANES * sizeof(real) == 64)
#else
#define MASK_REGISTERS 0
#endif

template <class T> struct Raw;
template <> struct Raw<float> { typedef float type __attribute__((vector_size(GPUSIM_LANES * sizeof(real)))); };
template <> struct Raw<double> { typedef double type __attribute__((vector_size(GPUSIM_LANES * sizeof(real)))); };

template <class T> struct Vector;
template <class T> struct IntegerMask {
    typedef decltype(typename Raw<T>::type{} > typename Raw<T>::type{}) Bits;
    typedef typename Raw<T>::type Values;
    Bits bits;
    MEMBER IntegerMask operator&(IntegerMask o) const { return {bits & o.bits}; }
    MEMBER IntegerMask operator|(IntegerMask o) const { return {bits | o.bits}; }
    MEMBER IntegerMask operator!() const { return {~bits}; }
    static MEMBER IntegerMask greater(Values a, Values b) { return {a > b}; }
    static MEMBER IntegerMask greater_equal(Values a, Values b) { return {a >= b}; }
    static MEMBER IntegerMask equal(Values a, Values b) { return {a == b}; }
    MEMBER Values choose(Values yes, Values no) const { return bits ? yes : no; }
    static MEMBER Values max_(Values a, Values b) { return a > b ? a : b; }
    static MEMBER Values min_(Values a, Values b) { return a < b ? a : b; }
    MEMBER bool any() const {
        typedef long long Words __attribute__((vector_size(GPUSIM_LANES * sizeof(real))));
        const Words words = (Words)bits;
        long long all = 0;
        for (unsigned k = 0; k < sizeof(Words) / sizeof(long long); ++k) all |= words[k];
        return all != 0;
    }
};
#if defined(__AVX512F__)
struct RegisterMask {
    unsigned bits;
    MEMBER RegisterMask operator&(RegisterMask o) const { return {bits & o.bits}; }
    MEMBER RegisterMask operator|(RegisterMask o) const { return {bits | o.bits}; }
    MEMBER RegisterMask operator!() const { return {bits ^ ((1u << GPUSIM_LANES) - 1u)}; }
    static MEMBER RegisterMask greater(__m512 a, __m512 b) { return {_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ)}; }
    static MEMBER RegisterMask greater(__m512d a, __m512d b) { return {_mm512_cmp_pd_mask(a, b, _CMP_GT_OQ)}; }
    static MEMBER RegisterMask greater_equal(__m512 a, __m512 b) { return {_mm512_cmp_ps_mask(a, b, _CMP_GE_OQ)}; }
    static MEMBER RegisterMask greater_equal(__m512d a, __m512d b) { return {_mm512_cmp_pd_mask(a, b, _CMP_GE_OQ)}; }
    static MEMBER RegisterMask equal(__m512 a, __m512 b) { return {_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)}; }
    static MEMBER RegisterMask equal(__m512d a, __m512d b) { return {_mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ)}; }
    MEMBER __m512 choose(__m512 yes, __m512 no) const { return _mm512_mask_blend_ps(__mmask16(bits), no, yes); }
    MEMBER __m512d choose(__m512d yes, __m512d no) const { return _mm512_mask_blend_pd(__mmask8(bits), no, yes); }
    // Return a > b ? a : b. With a NaN, or with +0 and -0, the result is b.
    static MEMBER __m512 max_(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
    static MEMBER __m512d max_(__m512d a, __m512d b) { return _mm512_max_pd(a, b); }
    static MEMBER __m512 min_(__m512 a, __m512 b) { return _mm512_min_ps(a, b); }
    static MEMBER __m512d min_(__m512d a, __m512d b) { return _mm512_min_pd(a, b); }
    MEMBER bool any() const { return bits != 0; }
};
template <class T, bool registers> struct MaskOf { typedef IntegerMask<T> type; };
template <class T> struct MaskOf<T, true> { typedef RegisterMask type; };
#else
template <class T, bool registers> struct MaskOf { typedef IntegerMask<T> type; };
#endif

template <class T> struct Vector {
    typedef typename Raw<T>::type Values;
    typedef typename MaskOf<T, MASK_REGISTERS>::type Mask;
    Values v;
    Vector() = default;
    MEMBER Vector(Values values) : v(values) {}
    static MEMBER Vector of(T x) { return Vector(Values{} + x); }
    MEMBER T operator[](int lane) const { return v[lane]; }
    MEMBER Vector operator-() const { return Vector(-v); }
    MEMBER Vector& operator+=(Vector o) { return v += o.v, *this; }
    MEMBER Vector& operator-=(Vector o) { return v -= o.v, *this; }
#define GPUSIM_LANEWISE(op)                                                              \
    friend MEMBER Vector operator op(Vector a, Vector b) { return Vector(a.v op b.v); } \
    friend MEMBER Vector operator op(Vector a, T b) { return Vector(a.v op b); }        \
    friend MEMBER Vector operator op(T a, Vector b) { return Vector(a op b.v); }
    GPUSIM_LANEWISE(+)
    GPUSIM_LANEWISE(-)
    GPUSIM_LANEWISE(*)
    GPUSIM_LANEWISE(/)
#undef GPUSIM_LANEWISE
    friend MEMBER Mask operator>(Vector a, Vector b) { return Mask::greater(a.v, b.v); }
    friend MEMBER Mask operator<(Vector a, Vector b) { return Mask::greater(b.v, a.v); }
    friend MEMBER Mask operator<=(Vector a, Vector b) { return Mask::greater_equal(b.v, a.v); }
    friend MEMBER Mask operator>(Vector a, T b) { return a > of(b); }
    friend MEMBER Mask operator<(Vector a, T b) { return a < of(b); }
    friend MEMBER Mask operator==(Vector a, T b) { return Mask::equal(a.v, of(b).v); }
};
template <class M, class T> GPUSIM_FN Vector<T> choose(M mask, Vector<T> yes, Vector<T> no) {
    return Vector<T>(mask.choose(yes.v, no.v));
}
template <class T> GPUSIM_FN bool any(IntegerMask<T> mask) { return mask.any(); }
template <class T> GPUSIM_FN Vector<T> max_(Vector<T> a, Vector<T> b) { return Vector<T>(Vector<T>::Mask::max_(a.v, b.v)); }
template <class T> GPUSIM_FN Vector<T> min_(Vector<T> a, Vector<T> b) { return Vector<T>(Vector<T>::Mask::min_(a.v, b.v)); }
template <class T> GPUSIM_FN Vector<T> clamped(Vector<T> x, Vector<T> low, Vector<T> high) {
    return choose(x < low, low, choose(x > high, high, x));
}
template <class T> GPUSIM_FN Vector<T> abs_(Vector<T> x) { return choose(x < T(0), -x, x) + T(0); }
template <class T> GPUSIM_FN T lane_of(Vector<T> x, int lane) { return x.v[lane]; }
template <class T> GPUSIM_FN void set_lane(Vector<T>& x, int lane, T value) { x.v[lane] = value; }
template <class T> GPUSIM_FN void whole_numbers(Vector<T> x, int* out) {
    typedef int Whole __attribute__((vector_size(VECTOR_BYTES / sizeof(T) * sizeof(int)), aligned(sizeof(int)), may_alias));
    *reinterpret_cast<Whole*>(out) = __builtin_convertvector(x.v, Whole);
}
// Return the maximum lane of non-negative numbers. NaN is the greatest, as for integers with the same bits.
template <class T> GPUSIM_FN T greatest_lane(Vector<T> x) {
    typedef std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t> Bits;
    Bits bits[sizeof(Vector<T>) / sizeof(T)], greatest = 0;
    std::memcpy(bits, &x, sizeof(bits));
    for (Bits lane : bits) greatest = max_(greatest, Bits(lane & (Bits(-1) >> 1)));
    T result;
    std::memcpy(&result, &greatest, sizeof(T));
    return result;
}
// Use instructions directly, because compilers vectorize loops over square roots only without errno.
#if defined(__AVX512F__)
GPUSIM_FN bool any(RegisterMask mask) { return mask.any(); }
GPUSIM_FN void roots64(float* x) { _mm512_storeu_ps(x, _mm512_sqrt_ps(_mm512_loadu_ps(x))); }
GPUSIM_FN void roots64(double* x) { _mm512_storeu_pd(x, _mm512_sqrt_pd(_mm512_loadu_pd(x))); }
#endif
#if defined(__AVX2__)
GPUSIM_FN void roots32(float* x) { _mm256_storeu_ps(x, _mm256_sqrt_ps(_mm256_loadu_ps(x))); }
GPUSIM_FN void roots32(double* x) { _mm256_storeu_pd(x, _mm256_sqrt_pd(_mm256_loadu_pd(x))); }
#endif
template <class T> GPUSIM_FN Vector<T> sqrt_(Vector<T> x) {
    const int lanes = VECTOR_BYTES / int(sizeof(T));
    T* values = reinterpret_cast<T*>(&x);
    int l = 0;
#if defined(__AVX512F__)
    for (; l + 64 / int(sizeof(T)) <= lanes; l += 64 / int(sizeof(T))) roots64(values + l);
#endif
#if defined(__AVX2__)
    for (; l + 32 / int(sizeof(T)) <= lanes; l += 32 / int(sizeof(T))) roots32(values + l);
#endif
    for (; l < lanes; ++l) values[l] = sqrt_(values[l]);
    return x;
}

// Transpose six numbers per body to lanes, and back. In single precision, a transposition of blocks in registers takes
// half the time.
template <class T> GPUSIM_FN void six_to_lanes(const T* from, const int* body, Vector<T>* out) {
    for (int l = 0; l < GPUSIM_LANES; ++l)
        for (int k = 0; k < 6; ++k) reinterpret_cast<T*>(out + k)[l] = from[6 * body[l] + k];
}
// Add six numbers per lane to the bodies. Lanes with a negative body index are unused.
template <class T> GPUSIM_FN void add_six(const Vector<T>* change, const int* body, T* to) {
    for (int l = 0; l < GPUSIM_LANES; ++l)
        for (int k = 0; body[l] >= 0 && k < 6; ++k) to[6 * body[l] + k] += T(change[k].v[l]);
}
#if defined(__AVX2__)
GPUSIM_FN __m128 two_numbers(const float* from) { return _mm_loadl_pi(_mm_setzero_ps(), reinterpret_cast<const __m64*>(from)); }
GPUSIM_FN void six_to_lanes(const float* from, const int* body, Vector<float>* out) {
    for (int l = 0; l < GPUSIM_LANES; l += 4) {
        const float* rows[4] = {from + 6 * body[l], from + 6 * body[l + 1], from + 6 * body[l + 2], from + 6 * body[l + 3]};
        __m128 a = _mm_loadu_ps(rows[0]), b = _mm_loadu_ps(rows[1]), c = _mm_loadu_ps(rows[2]), d = _mm_loadu_ps(rows[3]);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        const __m128 low = _mm_unpacklo_ps(two_numbers(rows[0] + 4), two_numbers(rows[1] + 4));
        const __m128 high = _mm_unpacklo_ps(two_numbers(rows[2] + 4), two_numbers(rows[3] + 4));
        const __m128 columns[6] = {a, b, c, d, _mm_movelh_ps(low, high), _mm_movehl_ps(high, low)};
        for (int k = 0; k < 6; ++k) _mm_storeu_ps(reinterpret_cast<float*>(out + k) + l, columns[k]);
    }
}
GPUSIM_FN void add_row(__m128 four, __m128 two, float* to) {
    _mm_storeu_ps(to, _mm_add_ps(_mm_loadu_ps(to), four));
    _mm_storel_pi(reinterpret_cast<__m64*>(to + 4), _mm_add_ps(two_numbers(to + 4), two));
}
GPUSIM_FN void add_six(const Vector<float>* change, const int* body, float* to) {
    for (int l = 0; l < GPUSIM_LANES; l += 4) {
        __m128 part[6];
        for (int k = 0; k < 6; ++k) part[k] = _mm_loadu_ps(reinterpret_cast<const float*>(change + k) + l);
        _MM_TRANSPOSE4_PS(part[0], part[1], part[2], part[3]);
        const __m128 low = _mm_unpacklo_ps(part[4], part[5]), high = _mm_unpackhi_ps(part[4], part[5]);
        const __m128 two[4] = {low, _mm_movehl_ps(low, low), high, _mm_movehl_ps(high, high)};
        for (int n = 0; n < 4; ++n)
            if (body[l + n] >= 0) add_row(part[n], two[n], to + 6 * body[l + n]);
    }
}
#endif
