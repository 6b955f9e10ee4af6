// Rows and columns of small blocks. On a CPU, the types contain N numbers. On a GPU, a type contains one row in
// registers. Every operation has the order of a plain loop, so the results have the same bits.
#pragma once
#include "platform.cuh"

// An item of a phase is a whole block on a CPU, and one row on a GPU.
#if GPUSIM_GPU || defined(GPUSIM_TEAM) || defined(GPUSIM_PLAIN)
#define WHOLE_BLOCKS 0
#define VECTOR_BODIES 0
#else
#define WHOLE_BLOCKS 1
#include <type_traits>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

// N separate numbers, for CPUs without long vectors, and for groups of worlds (each number is a vector).
template <class T, int N> struct Numbers {
    T x[N];
    static MEMBER Numbers load(const T* from) { return strided(from, 1); }
    // Load numbers that are ``stride`` apart, such as a column of a block.
    static MEMBER Numbers strided(const T* from, int stride) {
        Numbers out;
#pragma GCC unroll 6
        for (int k = 0; k < N; ++k) out.x[k] = from[k * stride];
        return out;
    }
    static MEMBER Numbers every(T value) {
        Numbers out;
#pragma GCC unroll 6
        for (int k = 0; k < N; ++k) out.x[k] = value;
        return out;
    }
    static MEMBER Numbers zero() { return every(T(0)); }
    MEMBER void store(T* to) const {
#pragma GCC unroll 6
        for (int k = 0; k < N; ++k) to[k] = x[k];
    }
    MEMBER T get(int k) const { return x[k]; }
    MEMBER Numbers all(int k) const { return every(x[k]); }
    MEMBER void set(int k, T value) { x[k] = value; }
#define NUMBERS_OPERATION(op)                              \
    MEMBER Numbers operator op(Numbers o) const {          \
        Numbers out;                                       \
        _Pragma("GCC unroll 6") for (int k = 0; k < N; ++k) out.x[k] = x[k] op o.x[k]; \
        return out;                                        \
    }
    NUMBERS_OPERATION(+)
    NUMBERS_OPERATION(-)
    NUMBERS_OPERATION(*)
    NUMBERS_OPERATION(/)
#undef NUMBERS_OPERATION
    MEMBER Numbers operator*(T by) const {
        Numbers out;
#pragma GCC unroll 6
        for (int k = 0; k < N; ++k) out.x[k] = x[k] * by;
        return out;
    }
};
// Six numbers: a vector of four and a vector of two.
template <class T> struct FourAndTwo {
    static constexpr int COUNT = 6, WIDTH = 6;
    typedef T Four __attribute__((vector_size(4 * sizeof(T)), aligned(alignof(T)), may_alias));
    typedef T Two __attribute__((vector_size(2 * sizeof(T)), aligned(alignof(T)), may_alias));
    Four a;
    Two b;
    static MEMBER FourAndTwo load(const T* from) {
        return {*reinterpret_cast<const Four*>(from), *reinterpret_cast<const Two*>(from + 4)};
    }
    static MEMBER FourAndTwo strided(const T* from, int stride) {
        return {Four{from[0], from[stride], from[2 * stride], from[3 * stride]}, Two{from[4 * stride], from[5 * stride]}};
    }
    static MEMBER FourAndTwo every(T x) { return {Four{x, x, x, x}, Two{x, x}}; }
    static MEMBER FourAndTwo zero() { return {Four{}, Two{}}; }
    MEMBER void store(T* to) const {
        *reinterpret_cast<Four*>(to) = a;
        *reinterpret_cast<Two*>(to + 4) = b;
    }
    MEMBER T get(int k) const { return k < 4 ? a[k] : b[k - 4]; }
    MEMBER FourAndTwo all(int k) const { return every(get(k)); }
    MEMBER void set(int k, T x) {
        if (k < 4)
            a[k] = x;
        else
            b[k - 4] = x;
    }
    MEMBER FourAndTwo operator+(FourAndTwo o) const { return {a + o.a, b + o.b}; }
    MEMBER FourAndTwo operator-(FourAndTwo o) const { return {a - o.a, b - o.b}; }
    MEMBER FourAndTwo operator*(FourAndTwo o) const { return {a * o.a, b * o.b}; }
    MEMBER FourAndTwo operator/(FourAndTwo o) const { return {a / o.a, b / o.b}; }
    MEMBER FourAndTwo operator*(T x) const { return {a * x, b * x}; }
};
#if defined(__AVX512F__)
// Up to eight numbers in one register. The remaining lanes are zero.
template <int N> struct Register {
    static constexpr __mmask8 USED = __mmask8((1 << N) - 1);
    __m512d v;
    static MEMBER Register load(const double* from) { return {_mm512_maskz_loadu_pd(USED, from)}; }
    static MEMBER Register strided(const double* from, int stride) {
        double x[6] = {};
#pragma GCC unroll 6
        for (int k = 0; k < N; ++k) x[k] = from[k * stride];
        return {_mm512_setr_pd(x[0], x[1], x[2], x[3], x[4], x[5], 0.0, 0.0)};
    }
    static MEMBER Register every(double x) { return {_mm512_set1_pd(x)}; }
    static MEMBER Register zero() { return {_mm512_setzero_pd()}; }
    MEMBER void store(double* to) const { _mm512_mask_storeu_pd(to, USED, v); }
    MEMBER double get(int k) const { return v[k]; }
    MEMBER Register all(int k) const { return {_mm512_permutexvar_pd(_mm512_set1_epi64(k), v)}; }
    MEMBER void set(int k, double x) { v = _mm512_mask_mov_pd(v, __mmask8(1 << k), _mm512_set1_pd(x)); }
    MEMBER Register operator+(Register o) const { return {_mm512_add_pd(v, o.v)}; }
    MEMBER Register operator-(Register o) const { return {_mm512_sub_pd(v, o.v)}; }
    MEMBER Register operator*(Register o) const { return {_mm512_mul_pd(v, o.v)}; }
    MEMBER Register operator/(Register o) const { return {_mm512_div_pd(v, o.v)}; }
    MEMBER Register operator*(double x) const { return {_mm512_mul_pd(v, _mm512_set1_pd(x))}; }
};
#endif
template <class T, int N> struct RowType { typedef Numbers<T, N> type; };
template <class T> struct RowType<T, 6> { typedef FourAndTwo<T> type; };
#if defined(__AVX512F__)
template <> struct RowType<double, 3> { typedef Register<3> type; };
template <> struct RowType<double, 5> { typedef Register<5> type; };
template <> struct RowType<double, 6> { typedef Register<6> type; };
#endif
template <class T, int N> using Row = typename RowType<T, N>::type;
template <class T> using Six = FourAndTwo<T>;

// Return the product of a block with six columns and a vector.
template <class T, class V> GPUSIM_FN V columns_times(const V (&column)[6], const T* x) {
    V sum = column[0] * x[0];
    for (int k = 1; k < 6; ++k) sum = sum + column[k] * x[k];
    return sum;
}
// Load the columns of a block of R rows with C numbers each.
template <int R, int C, class T, class V> GPUSIM_FN void load_columns(const T* from, V* out) {
#pragma GCC unroll 6
    for (int c = 0; c < C; ++c) out[c] = V::strided(from + c, C);
}
#if defined(__AVX512F__)
// Transpose the block in registers.
template <int R, int C> GPUSIM_FN void load_columns(const double* from, Register<R>* out) {
    __m512d rows[8], pairs[8];
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) rows[k] = k < R ? Register<C>::load(from + C * k).v : _mm512_setzero_pd();
#pragma GCC unroll 4
    for (int k = 0; k < 8; k += 2) {
        pairs[k] = _mm512_unpacklo_pd(rows[k], rows[k + 1]);
        pairs[k + 1] = _mm512_unpackhi_pd(rows[k], rows[k + 1]);
    }
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; ++odd) {
        const __m512d a = _mm512_shuffle_f64x2(pairs[odd], pairs[2 + odd], 0x88);
        const __m512d b = _mm512_shuffle_f64x2(pairs[4 + odd], pairs[6 + odd], 0x88);
        const __m512d c = _mm512_shuffle_f64x2(pairs[odd], pairs[2 + odd], 0xdd);
        const __m512d d = _mm512_shuffle_f64x2(pairs[4 + odd], pairs[6 + odd], 0xdd);
        if (odd < C) out[odd].v = _mm512_shuffle_f64x2(a, b, 0x88);
        if (2 + odd < C) out[2 + odd].v = _mm512_shuffle_f64x2(c, d, 0x88);
        if (4 + odd < C) out[4 + odd].v = _mm512_shuffle_f64x2(a, b, 0xdd);
    }
}
#endif
// Return the result of ``call`` with a constant N = n, for each number of rows n in a joint constraint.
#define RETURN_BY_BLOCK(n, call)                                \
    do {                                                        \
        if ((n) == 6) { constexpr int N = 6; return call; }     \
        if ((n) == 5) { constexpr int N = 5; return call; }     \
        if ((n) == 3) { constexpr int N = 3; return call; }     \
    } while (0)

// Three numbers, padded to four in memory.
template <class T> struct Three {
    static constexpr int COUNT = 3, WIDTH = 4;
    typedef T Values __attribute__((vector_size(4 * sizeof(T)), aligned(alignof(T)), may_alias));
    Values a;
    static MEMBER Three load(const T* from) { return {*reinterpret_cast<const Values*>(from)}; }
    static MEMBER Three strided(const T* from, int stride) { return {Values{from[0], from[stride], from[2 * stride], T(0)}}; }
    static MEMBER Three zero() { return {Values{}}; }
    MEMBER void store(T* to) const { *reinterpret_cast<Values*>(to) = a; }
    MEMBER T get(int k) const { return a[k]; }
    MEMBER Three operator+(Three o) const { return {a + o.a}; }
    MEMBER Three operator-(Three o) const { return {a - o.a}; }
    MEMBER Three operator*(T x) const { return {a * x}; }
};
// One number of each of eight bodies.
#define VECTOR_BODIES 8
struct BodyVector {
    typedef real Values __attribute__((vector_size(VECTOR_BODIES * sizeof(real))));
    Values v;
    BodyVector() = default;
    MEMBER BodyVector(Values values) : v(values) {}
    MEMBER BodyVector(real x) : v(Values{} + x) {}
    MEMBER BodyVector operator-() const { return BodyVector(-v); }
    friend MEMBER BodyVector operator+(BodyVector a, BodyVector b) { return BodyVector(a.v + b.v); }
    friend MEMBER BodyVector operator-(BodyVector a, BodyVector b) { return BodyVector(a.v - b.v); }
    friend MEMBER BodyVector operator*(BodyVector a, BodyVector b) { return BodyVector(a.v * b.v); }
    friend MEMBER BodyVector operator/(BodyVector a, BodyVector b) { return BodyVector(a.v / b.v); }
};
#endif

// Loops over rows of a block. A GPU compiler unrolls the loops, so that small arrays stay in registers.
constexpr int MAX_ROWS = GPUSIM_MAX_BLOCK;
#if GPUSIM_GPU
#define EACH_ROW(c, n) _Pragma("unroll") for (int c = 0; c < MAX_ROWS; ++c) if (c < (n))
#define EACH_ROW_BACK(c, n) _Pragma("unroll") for (int c = MAX_ROWS; c-- > 0;) if (c < (n))
#else
#define EACH_ROW(c, n) for (int c = 0; c < (n); ++c)
#define EACH_ROW_BACK(c, n) for (int c = (n); c-- > 0;)
#endif
// In global memory, a GPU reads or writes two numbers in one access. Arrays of a slab are aligned to two numbers, and
// so are rows with an even number of entries.
#define PAIRED (GPUSIM_GPU && !GPUSIM_SHARED_SLAB)
#if PAIRED && defined(FIXED_n_block)
#define PAIRED_ROWS (FIXED_n_block % 2 == 0)
#else
#define PAIRED_ROWS 0
#endif
#if PAIRED
template <class T> struct alignas(2 * sizeof(T)) Pair {
    T first, second;
};
template <class T> GPUSIM_FN void read_pair(const T* from, T* out) {
    const Pair<T> pair = *in_global(reinterpret_cast<const Pair<T>*>(from));
    out[0] = pair.first;
    out[1] = pair.second;
}
template <class T> GPUSIM_FN void write_pair(const T* from, T* out) {
    *in_global(reinterpret_cast<Pair<T>*>(out)) = {from[0], from[1]};
}
#endif
// Copy N numbers from a slab to registers, and back.
template <int N, class T> GPUSIM_FN void read_numbers(const T* from, T* out) {
#if PAIRED
    _Pragma("unroll") for (int c = 0; c + 1 < N; c += 2) read_pair(from + c, out + c);
    if (N % 2) out[N - 1] = from[N - 1];
#else
    for (int c = 0; c < N; ++c) out[c] = from[c];
#endif
}
template <int N, class T> GPUSIM_FN void write_numbers(const T* from, T* out) {
#if PAIRED
    _Pragma("unroll") for (int c = 0; c + 1 < N; c += 2) write_pair(from + c, out + c);
    if (N % 2) out[N - 1] = from[N - 1];
#else
    for (int c = 0; c < N; ++c) out[c] = from[c];
#endif
}
// Return a pointer to N numbers of a slab. The pointer points to the slab on a CPU, and to the registers ``copy`` on a
// GPU.
template <int N, class T> GPUSIM_FN const T* load_numbers(const T* from, T* copy) {
#if PAIRED
    read_numbers<N>(from, copy);
    return copy;
#else
    return (void)copy, from;
#endif
}
// Return a pointer to matrix b of an array of 3 x 3 matrices. If b is even, the matrix is aligned to two numbers.
template <class T> GPUSIM_FN const T* load_matrix(const T* matrices, int b, T* copy) {
    const T* from = matrices + 9 * b;
#if PAIRED
    const int odd = b & 1;
    T pairs[8];
    const T single = from[odd ? 0 : 8];
    read_numbers<8>(from + odd, pairs);
    copy[0] = odd ? single : pairs[0];
    _Pragma("unroll") for (int k = 1; k < 8; ++k) copy[k] = odd ? pairs[k - 1] : pairs[k];
    copy[8] = odd ? pairs[7] : single;
    return copy;
#else
    return (void)copy, from;
#endif
}
// Copy a row of n numbers. The copy starts at ``first``, or at the pair that contains ``first``.
template <class T> GPUSIM_FN void read_row(int n, const T* from, T* out) {
    EACH_ROW(c, n) {
#if PAIRED_ROWS
        if (c % 2 == 0) read_pair(from + c, out + c);
#else
        out[c] = from[c];
#endif
    }
}
template <class T> GPUSIM_FN void write_row(int n, const T* from, T* out, int first = 0) {
    EACH_ROW(c, n) {
#if PAIRED_ROWS
        if (c % 2 == 0 && c + 1 >= first) write_pair(from + c, out + c);
#else
        if (c >= first) out[c] = from[c];
#endif
    }
}
