// One number of WORLD_LANES worlds, in a CPU vector. Wide phases use the types of this file instead of real, double and
// int (simd_group.cuh). Lanes are independent, and each operation has the same order as for one world. The bits of a
// world do not depend on other worlds. Comparisons return a Truth: a mask with one entry per lane.
#pragma once
#include "platform.cuh"
#include "block_rows.cuh"
#include "detmath.cuh"
#include <type_traits>

#define WORLD_LANES GPUSIM_WORLD_LANES
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif
#if defined(__AVX512F__) && defined(__AVX512VL__) && WORLD_LANES == 8
#define WIDE_REGISTERS 1
#else
#define WIDE_REGISTERS 0
#endif
// Doubles of four worlds fill an AVX2 register.
#if defined(__AVX2__) && WORLD_LANES == 4
#define WIDE_FOURS 1
#else
#define WIDE_FOURS 0
#endif

namespace wide {

template <class T> struct Raw;
template <> struct Raw<double> { typedef double type __attribute__((vector_size(WORLD_LANES * sizeof(double)))); };
template <> struct Raw<float> { typedef float type __attribute__((vector_size(WORLD_LANES * sizeof(float)))); };
template <> struct Raw<int> { typedef int type __attribute__((vector_size(WORLD_LANES * sizeof(int)))); };
typedef long long Words __attribute__((vector_size(WORLD_LANES * sizeof(long long))));

#if WIDE_REGISTERS
struct Truth {
    unsigned bits;
    Truth() = default;
    MEMBER Truth(bool all) : bits(all ? 0xffu : 0u) {}
    MEMBER explicit Truth(unsigned mask) : bits(mask) {}
    MEMBER unsigned lanes() const { return bits; }
    friend MEMBER Truth operator&(Truth a, Truth b) { return Truth(a.bits & b.bits); }
    friend MEMBER Truth operator|(Truth a, Truth b) { return Truth(a.bits | b.bits); }
    MEMBER Truth operator!() const { return Truth(bits ^ 0xffu); }
    static MEMBER Truth greater(__m512d a, __m512d b) { return Truth(unsigned(_mm512_cmp_pd_mask(a, b, _CMP_GT_OQ))); }
    static MEMBER Truth greater(__m256 a, __m256 b) { return Truth(unsigned(_mm256_cmp_ps_mask(a, b, _CMP_GT_OQ))); }
    static MEMBER Truth greater(__m256i a, __m256i b) { return Truth(unsigned(_mm256_cmpgt_epi32_mask(a, b))); }
    static MEMBER Truth greater_equal(__m512d a, __m512d b) { return Truth(unsigned(_mm512_cmp_pd_mask(a, b, _CMP_GE_OQ))); }
    static MEMBER Truth greater_equal(__m256 a, __m256 b) { return Truth(unsigned(_mm256_cmp_ps_mask(a, b, _CMP_GE_OQ))); }
    static MEMBER Truth greater_equal(__m256i a, __m256i b) { return Truth(unsigned(_mm256_cmpge_epi32_mask(a, b))); }
    static MEMBER Truth equal(__m512d a, __m512d b) { return Truth(unsigned(_mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ))); }
    static MEMBER Truth equal(__m256 a, __m256 b) { return Truth(unsigned(_mm256_cmp_ps_mask(a, b, _CMP_EQ_OQ))); }
    static MEMBER Truth equal(__m256i a, __m256i b) { return Truth(unsigned(_mm256_cmpeq_epi32_mask(a, b))); }
    MEMBER __m512d choose(__m512d yes, __m512d no) const { return _mm512_mask_blend_pd(__mmask8(bits), no, yes); }
    MEMBER __m256 choose(__m256 yes, __m256 no) const { return _mm256_mask_blend_ps(__mmask8(bits), no, yes); }
    MEMBER __m256i choose(__m256i yes, __m256i no) const { return _mm256_mask_blend_epi32(__mmask8(bits), no, yes); }
};
template <class T> struct Register;
template <> struct Register<double> { typedef __m512d type; };
template <> struct Register<float> { typedef __m256 type; };
template <> struct Register<int> { typedef __m256i type; };
#define WIDE_REGISTER(T, x) ((typename Register<T>::type)(x))
#else
struct Truth {
    Words bits;
    Truth() = default;
    MEMBER Truth(bool all) : bits(Words{} - (long long)all) {}
    MEMBER explicit Truth(Words mask) : bits(mask) {}
    MEMBER explicit Truth(unsigned mask) {
        for (int l = 0; l < WORLD_LANES; ++l) bits[l] = -(long long)(mask >> l & 1u);
    }
#if WIDE_FOURS
    MEMBER unsigned lanes() const { return unsigned(_mm256_movemask_pd((__m256d)bits)); }
#else
    MEMBER unsigned lanes() const {
        unsigned mask = 0;
        for (int l = 0; l < WORLD_LANES; ++l) mask |= bits[l] ? 1u << l : 0u;
        return mask;
    }
#endif
    friend MEMBER Truth operator&(Truth a, Truth b) { return Truth(a.bits & b.bits); }
    friend MEMBER Truth operator|(Truth a, Truth b) { return Truth(a.bits | b.bits); }
    MEMBER Truth operator!() const { return Truth(~bits); }
    template <class V> static MEMBER Truth greater(V a, V b) { return Truth(__builtin_convertvector(a > b, Words)); }
    template <class V> static MEMBER Truth greater_equal(V a, V b) { return Truth(__builtin_convertvector(a >= b, Words)); }
    template <class V> static MEMBER Truth equal(V a, V b) { return Truth(__builtin_convertvector(a == b, Words)); }
    template <class V> MEMBER V choose(V yes, V no) const { return __builtin_convertvector(bits, decltype(yes > no)) ? yes : no; }
};
#define WIDE_REGISTER(T, x) (x)
#endif
GPUSIM_FN bool any(Truth mask) { return mask.lanes() != 0; }
GPUSIM_FN bool all(Truth mask) { return mask.lanes() == (1u << WORLD_LANES) - 1u; }

// A float converts to double without a cast.
template <class S, class T> constexpr bool widens = std::is_same<S, float>::value && std::is_same<T, double>::value;
#define WIDE_MIXED template <class S, typename std::enable_if<widens<T, S>, int>::type = 0>
template <class T> struct Wide {
    typedef typename Raw<T>::type Values;
    Values v;
    Wide() = default;
    MEMBER Wide(Values values) : v(values) {}
    MEMBER Wide(double x) : v(Values{} + T(x)) {}
    MEMBER Wide(float x) : v(Values{} + T(x)) {}
    MEMBER Wide(int x) : v(Values{} + T(x)) {}
    template <class S, bool wider = widens<S, T>, typename std::enable_if<wider, int>::type = 0>
    MEMBER Wide(Wide<S> o) : v(__builtin_convertvector(o.v, Values)) {}
    template <class S, bool wider = widens<S, T>, typename std::enable_if<!wider, int>::type = 0>
    MEMBER explicit Wide(Wide<S> o) : v(__builtin_convertvector(o.v, Values)) {}
    MEMBER Wide(const Wide& o) : v(o.v) {}
    MEMBER Wide& operator=(const Wide& o) { return v = o.v, *this; }
    MEMBER Wide operator-() const { return Wide(-v); }
    MEMBER Wide& operator+=(Wide o) { return v += o.v, *this; }
    MEMBER Wide& operator-=(Wide o) { return v -= o.v, *this; }
    MEMBER Wide& operator*=(Wide o) { return v *= o.v, *this; }
    WIDE_MIXED MEMBER Wide& operator+=(S x) { return *this = Wide(*this + x); }
    WIDE_MIXED MEMBER Wide& operator-=(S x) { return *this = Wide(*this - x); }
    WIDE_MIXED MEMBER Wide& operator*=(S x) { return *this = Wide(*this * x); }
    friend MEMBER Wide operator+(Wide a, Wide b) { return Wide(a.v + b.v); }
    friend MEMBER Wide operator-(Wide a, Wide b) { return Wide(a.v - b.v); }
    friend MEMBER Wide operator*(Wide a, Wide b) { return Wide(a.v * b.v); }
    friend MEMBER Wide operator/(Wide a, Wide b) { return Wide(a.v / b.v); }
    friend MEMBER Wide operator&(Wide a, Wide b) { return Wide(a.v & b.v); }  // for integers
    friend MEMBER Truth operator>(Wide a, Wide b) { return Truth::greater(WIDE_REGISTER(T, a.v), WIDE_REGISTER(T, b.v)); }
    friend MEMBER Truth operator<(Wide a, Wide b) { return b > a; }
    friend MEMBER Truth operator>=(Wide a, Wide b) { return Truth::greater_equal(WIDE_REGISTER(T, a.v), WIDE_REGISTER(T, b.v)); }
    friend MEMBER Truth operator<=(Wide a, Wide b) { return b >= a; }
    friend MEMBER Truth operator==(Wide a, Wide b) { return Truth::equal(WIDE_REGISTER(T, a.v), WIDE_REGISTER(T, b.v)); }
    friend MEMBER Truth operator!=(Wide a, Wide b) { return !(a == b); }
};
typedef Wide<double> Double;
// An operation on a float and a double gives a double.
#undef WIDE_MIXED
#define WIDE_MIXED(op)                                                                                                \
    template <class S, typename std::enable_if<widens<float, S>, int>::type = 0>                                      \
    GPUSIM_FN auto operator op(Wide<float> a, S b) { return Double(a) op Double(b); }                                 \
    template <class S, typename std::enable_if<widens<float, S>, int>::type = 0>                                      \
    GPUSIM_FN auto operator op(S a, Wide<float> b) { return Double(a) op Double(b); }
WIDE_MIXED(+)
WIDE_MIXED(-)
WIDE_MIXED(*)
WIDE_MIXED(/)
WIDE_MIXED(<)
WIDE_MIXED(>)
WIDE_MIXED(<=)
WIDE_MIXED(>=)
WIDE_MIXED(==)
WIDE_MIXED(!=)
#undef WIDE_MIXED
typedef Wide<GPUSIM_REAL> real;
typedef Wide<GPUSIM_STORED> stored;
typedef Wide<int> whole;
typedef Truth mask;

using ::choose;
using ::choose_at;
template <class T> GPUSIM_FN Wide<T> choose(Truth mask, Wide<T> yes, Wide<T> no) {
    return Wide<T>(typename Raw<T>::type(mask.choose(WIDE_REGISTER(T, yes.v), WIDE_REGISTER(T, no.v))));
}
using ::max_;
using ::min_;
using ::clamped;
using ::abs_;
using ::sqrt_;
using ::is_nan;
template <class T> GPUSIM_FN Wide<T> choose_at(Truth mask, const Wide<T>* yes, const Wide<T>* no) {
    return choose(mask, *yes, *no);
}
template <class T> GPUSIM_FN Wide<T> max_(Wide<T> a, Wide<T> b) { return choose(a > b, a, b); }
template <class T> GPUSIM_FN Wide<T> min_(Wide<T> a, Wide<T> b) { return choose(a < b, a, b); }
template <class T> GPUSIM_FN Wide<T> clamped(Wide<T> x, Wide<T> low, Wide<T> high) {
    return choose(x < low, low, choose(x > high, high, x));
}
template <class T> GPUSIM_FN Truth is_nan(Wide<T> x) { return !(x == x); }

#if WIDE_REGISTERS
GPUSIM_FN Wide<double> sqrt_(Wide<double> x) { return Wide<double>(Raw<double>::type(_mm512_sqrt_pd(x.v))); }
GPUSIM_FN Wide<float> sqrt_(Wide<float> x) { return Wide<float>(Raw<float>::type(_mm256_sqrt_ps(x.v))); }
#elif WIDE_FOURS
GPUSIM_FN Wide<double> sqrt_(Wide<double> x) { return Wide<double>(Raw<double>::type(_mm256_sqrt_pd(__m256d(x.v)))); }
GPUSIM_FN Wide<float> sqrt_(Wide<float> x) { return Wide<float>(Raw<float>::type(_mm_sqrt_ps(__m128(x.v)))); }
#else
template <class T> GPUSIM_FN Wide<T> sqrt_(Wide<T> x) {
    for (int l = 0; l < WORLD_LANES; ++l) x.v[l] = ::sqrt_(T(x.v[l]));
    return x;
}
#endif
// Bits of a double, as integers.
GPUSIM_FN Words bits_of(Double x) { return (Words)x.v; }
GPUSIM_FN Double of_bits(Words bits) { return Double((Raw<double>::type)bits); }
GPUSIM_FN Double abs_(Double x) { return of_bits(bits_of(x) & 0x7fffffffffffffffll); }
GPUSIM_FN Wide<float> abs_(Wide<float> x) {
    return Wide<float>((Raw<float>::type)((Raw<int>::type)x.v & 0x7fffffff));
}
GPUSIM_FN Double with_last_bits(Double value, int mask, int bits) {
    return of_bits((bits_of(value) & ~(long long)mask) | (long long)bits);
}
// Atomic maximum for non-negative numbers, as in platform.cuh. NaN is the greatest.
GPUSIM_FN void raise_where(Truth mask, Double* target, Double value) {
    const Words old = bits_of(*target), bits = bits_of(abs_(value));
    *target = choose(mask, of_bits(old < bits ? bits : old), *target);
}
GPUSIM_FN void raise_where(Truth mask, Wide<float>* target, Wide<float> value) {
    typedef Raw<int>::type Bits;
    const Bits old = (Bits)target->v, bits = (Bits)value.v & 0x7fffffff;
    *target = choose(mask, Wide<float>((Raw<float>::type)(old < bits ? bits : old)), *target);
}

// Return the lanes in which an integer is not 0.
#if WIDE_REGISTERS
GPUSIM_FN Truth not_zero(Words x) { return Truth(unsigned(_mm512_test_epi64_mask((__m512i)x, (__m512i)x))); }
#else
GPUSIM_FN Truth not_zero(Words x) { return Truth((Words)(x != 0)); }
#endif

// Functions of detmath.cuh. See the comments there.
namespace det {
using ::det::TWO_PI;
namespace detail = ::det::detail;
constexpr long long SIGN = (long long)detail::SIGN_BIT;
GPUSIM_FN Double with_sign(Double size, Double sign) { return of_bits(bits_of(size) | (bits_of(sign) & SIGN)); }
GPUSIM_FN Double round_even(Double x) {
    const Double size = abs_(x);
    return choose(size < 4503599627370496.0, with_sign((size + 4503599627370496.0) - 4503599627370496.0, x), x);
}
struct Angle {
    Double hi, lo;
    Words quarters;
};
// Exact difference, as in detail::subtract.
GPUSIM_FN Double subtract(Double a, Double b, Double* lo) {
    const Double d = a - b, t = d - a;
    *lo = (a - (d - t)) - (b + t);
    return d;
}
GPUSIM_FN Angle reduce_exactly(Double x) {
    const Double n = (x * detail::TWO_OVER_PI + 6755399441055744.0) - 6755399441055744.0;
    Double a_lo, b_lo;
    const Double a = subtract(x - n * 1.5707963267341256, n * 6.077100506303966e-11, &a_lo);
    const Double b = subtract(a, n * 2.0222662487111665e-21, &b_lo);
    const Double tail = (a_lo + b_lo) - n * 8.4784276603689e-32;
    const Double hi = b + tail;
    return {hi, tail - (hi - b), __builtin_convertvector(n.v, Words)};
}
GPUSIM_FN Double sin_of(Angle a) {
    const Truth odd = not_zero(a.quarters & 1);
    Double v;
    if (all(odd)) v = detail::cos_kernel(a.hi, a.lo);
    else if (!any(odd)) v = detail::sin_kernel(a.hi, a.lo);
    else v = choose(odd, detail::cos_kernel(a.hi, a.lo), detail::sin_kernel(a.hi, a.lo));
    return choose(not_zero(a.quarters & 2), -v, v);
}
GPUSIM_FN Double sin(Double x) {
    if (!all(abs_(x) <= 1.0e6)) {
        for (int l = 0; l < WORLD_LANES; ++l) x.v[l] = ::det::sin(double(x.v[l]));
        return x;
    }
    return choose(abs_(x) < 1.0e-9, x, sin_of(reduce_exactly(x)));
}
GPUSIM_FN Double cos(Double x) {
    if (!all(abs_(x) <= 1.0e6)) {
        for (int l = 0; l < WORLD_LANES; ++l) x.v[l] = ::det::cos(double(x.v[l]));
        return x;
    }
    Angle a = reduce_exactly(x);
    a.quarters += 1;
    return sin_of(a);
}
GPUSIM_FN Double atan2(Double y, Double x) {
    const Double ax = abs_(x), ay = abs_(y), none = 0.0, one = 1.0;
    const Truth steep = ay > ax, left = not_zero(bits_of(x) & SIGN), crossed = (steep | left) & !(steep & left);
    const Double top = choose(steep, ax, ay), bottom = choose(steep, ay, ax);
    const Double u = choose(bottom == none, none, choose(top == bottom, one, top / bottom));
    const Truth low = u < 0.4375, middle = u < 0.6875;
    const Double over = choose(low, u, choose(middle, 2.0 * u - 1.0, u - 1.0));
    const Double t = over / choose(low, one, choose(middle, 2.0 + u, u + 1.0));
    const Double sign = choose(crossed, Double(-1.0), one);
    const Double base = choose(steep, Double(::det::HALF_PI), choose(left, Double(::det::PI), none));
    const Double base_lo = choose(steep, Double(detail::HALF_PI_LO), choose(left, Double(detail::PI_LO), none));
    const Double half = 4.63647609000806093515e-01, half_lo = 2.26987774529616870924e-17;
    const Double knot = sign * choose(low, none, choose(middle, half, Double(0.5 * ::det::HALF_PI)));
    const Double knot_lo = sign * choose(low, none, choose(middle, half_lo, Double(0.5 * detail::HALF_PI_LO)));
    const Double hi = base + knot;
    const Double lo = (knot - (hi - base)) + (base_lo + knot_lo);
    const Double angle = with_sign(hi + (sign * detail::atan_kernel(t) + lo), y);
    return choose(is_nan(x) | is_nan(y), Double(detail::double_nan()), angle);
}
// Float functions compute lane by lane, because kernels call them rarely.
GPUSIM_FN Wide<float> sin(Wide<float> x) {
    for (int l = 0; l < WORLD_LANES; ++l) x.v[l] = ::det::sin(float(x.v[l]));
    return x;
}
GPUSIM_FN Wide<float> cos(Wide<float> x) {
    for (int l = 0; l < WORLD_LANES; ++l) x.v[l] = ::det::cos(float(x.v[l]));
    return x;
}
GPUSIM_FN Wide<float> atan2(Wide<float> y, Wide<float> x) {
    for (int l = 0; l < WORLD_LANES; ++l) x.v[l] = ::det::atan2(float(y.v[l]), float(x.v[l]));
    return x;
}
}  // namespace det

// Call a function of N numbers with M results for each lane.
template <int N, int M, class F> GPUSIM_FN void each_lane(const Double* in, Double* out, F call) {
    for (int l = 0; l < WORLD_LANES; ++l) {
        double from[N], to[M];
        for (int k = 0; k < N; ++k) from[k] = in[k].v[l];
        call(from, to);
        for (int k = 0; k < M; ++k) out[k].v[l] = to[k];
    }
}

template <class T, int N> using Row = ::Numbers<T, N>;
template <class T> using Six = Row<T, 6>;

}  // namespace wide
