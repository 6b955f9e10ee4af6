// Elementary functions that give the same bits on every IEEE machine, on the CPU and on the GPU.
//
// CUDA and the C libraries round sin, exp and similar functions differently, so results would differ between machines.
// This file uses only comparisons, integer operations on bits, and + - * / and sqrt, which IEEE 754 defines exactly.
// The compiler must not fuse a multiply with an add (--fmad=false, -ffp-contract=off), and must not reorder sums. Every
// NaN result has the same bits.
// Namespace det contains the following functions for double and float:
//   sin cos sincos exp expm1 log atan2 pow rsqrt round_even, and the constants PI HALF_PI TWO_PI
// Errors for double: 1 ulp (expm1, atan2 and rsqrt: 1.5 ulp), for sin and cos up to |x| = 1e6. See pow for its error.
// Errors for float: 0.6 ulp (rsqrt: 1.5 ulp), because the code computes in double.
//
// Polynomial coefficients: fdlibm 5.3 and, for float, its descendant FreeBSD msun, both
// Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Developed at SunPro, a Sun Microsystems, Inc.
// business. Permission to use, copy, modify, and distribute this software is freely granted, provided that this
// notice is preserved.
#ifndef GPUSIM_DETMATH_CUH
#define GPUSIM_DETMATH_CUH

#ifdef __FAST_MATH__
#error "detmath.cuh: -ffast-math reorders sums; compile without it"
#endif

#ifndef __CUDACC__  // NVRTC has no headers, and CUDA C++ needs none
#include <math.h>
#include <string.h>
#endif

#ifndef GPUSIM_FN
#ifdef __CUDACC__
#define GPUSIM_FN static __device__ __forceinline__
#else
#define GPUSIM_FN static inline
#endif
#endif

#ifndef GPUSIM_SHARED
#define GPUSIM_SHARED GPUSIM_FN
#endif

namespace det {

constexpr double PI = 3.141592653589793;
constexpr double HALF_PI = 1.5707963267948966;
constexpr double TWO_PI = 6.283185307179586;

namespace detail {

typedef unsigned long long Bits;  // of a double

constexpr double HALF_PI_LO = 6.123233995736766e-17;  // remainder of HALF_PI
constexpr double PI_LO = 1.2246467991473532e-16;
constexpr double TWO_OVER_PI = 6.36619772367581382433e-01;
constexpr double INV_LN2 = 1.44269504088896338700e+00;
constexpr double LN2_HI = 6.93147180369123816490e-01;  // 32 bits: a product with an exponent is exact
constexpr double LN2_LO = 1.90821492927058770002e-10;
constexpr double MAX_ANGLE = 2147483648.0;  // for sin and cos: the number of quarter turns must fit an int
constexpr Bits SIGN_BIT = 0x8000000000000000ull;

GPUSIM_FN Bits to_bits(double x) {
#ifdef __CUDACC__
    return (Bits)__double_as_longlong(x);
#else
    Bits bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
#endif
}

GPUSIM_FN double from_bits(Bits bits) {
#ifdef __CUDACC__
    return __longlong_as_double((long long)bits);
#else
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

GPUSIM_FN float float_nan() {
    const unsigned bits = 0x7fc00000u;
#ifdef __CUDACC__
    return __uint_as_float(bits);
#else
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

GPUSIM_FN double double_nan() { return from_bits(0x7ff8000000000000ull); }
GPUSIM_FN double infinity() { return from_bits(0x7ff0000000000000ull); }
GPUSIM_FN double abs_(double x) { return from_bits(to_bits(x) & ~SIGN_BIT); }
GPUSIM_FN bool is_negative(double x) { return (to_bits(x) & SIGN_BIT) != 0; }  // true for -0

// Return size >= 0 with the sign of another number.
GPUSIM_FN double with_sign(double size, double sign) { return from_bits(to_bits(size) | (to_bits(sign) & SIGN_BIT)); }

// Round to float once. Replace a NaN, because its conversion gives different bits on GPUs and CPUs.
GPUSIM_FN float narrow(double x) { return x != x ? float_nan() : (float)x; }

// Return the nearest integer for |x| < 2^51, with ties to even. The result for -0 is +0.
GPUSIM_FN double round_small(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }

// 2^k for -1022 <= k <= 1023
GPUSIM_FN double power_of_two(int k) { return from_bits((Bits)(k + 1023) << 52); }

// Return y 2^k for y near 1 and |k| < 2000. The first product is exact, so a denormal result is rounded only once.
GPUSIM_FN double scale(double y, int k) { return y * power_of_two(k / 2) * power_of_two(k - k / 2); }

struct Sum {  // an unevaluated sum: hi + lo has about 100 bits
    double hi, lo;
};

// a - b without error (Knuth's two-sum)
GPUSIM_FN Sum subtract(double a, double b) {
    const double d = a - b;
    const double t = d - a;
    return {d, (a - (d - t)) - (b + t)};
}

// a b without error (Dekker), for |a|, |b| < 1e150
GPUSIM_FN Sum multiply(double a, double b) {
    const double p = a * b;
    const double ta = 134217729.0 * a;  // 2^27 + 1 splits 53 bits in two halves
    const double tb = 134217729.0 * b;
    const double a1 = ta - (ta - a), a2 = a - a1;
    const double b1 = tb - (tb - b), b2 = b - b1;
    return {p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2};
}

// ---- sin and cos ---------------------------------------------------------------------------------------------------

struct Angle {  // hi + lo in about [-pi/4, pi/4], and the number of subtracted quarter turns
    double hi, lo;
    int quarters;
};

// Cody-Waite reduction for |x| <= 1e6. pi/2 has three parts of 33 bits and a tail, so a part times n < 2^20 is exact.
// The result is accurate near multiples of pi/2, although most digits cancel.
GPUSIM_FN Angle reduce_exactly(double x) {
    const double n = round_small(x * TWO_OVER_PI);
    const Sum a = subtract(x - n * 1.5707963267341256, n * 6.077100506303966e-11);
    const Sum b = subtract(a.hi, n * 2.0222662487111665e-21);
    const double tail = (a.lo + b.lo) - n * 8.4784276603689e-32;
    const double hi = b.hi + tail;
    return {hi, tail - (hi - b.hi), (int)n};
}

// Cody-Waite reduction with parts of 22 bits, for n < 2^31. The absolute error is about 1e-16, even for small results.
GPUSIM_FN Angle reduce_wide(double x) {
    const double n = round_small(x * TWO_OVER_PI);
    const double a = (x - n * 1.570796012878418) - n * 3.139164164167596e-07;
    return {(a - n * 6.223371969669989e-14) - n * 2.0222662487959506e-21, 0.0, (int)n};
}

GPUSIM_FN Angle reduce(double x) { return abs_(x) <= 1.0e6 ? reduce_exactly(x) : reduce_wide(x); }

// For float results, pi/2 has a part of 25 bits and a tail.
GPUSIM_FN Angle reduce_short(double x) {
    if (abs_(x) > 1.0e6) return reduce_wide(x);
    const double n = round_small(x * TWO_OVER_PI);
    return {(x - n * 1.57079631090164184570) - n * 1.58932547735281966916e-08, 0.0, (int)n};
}

// sin and cos on [-pi/4, pi/4] (fdlibm k_sin.c, msun k_cos.c). T: double, or a vector of them (simd.cuh)
template <class T> GPUSIM_FN T sin_kernel(T x, T lo) {
    const T z = x * x;
    const T r = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * (2.75573137070700676789e-06
                   + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));
    const T v = z * x;
    return x - ((z * (0.5 * lo - v * r) - lo) - v * -1.66666666666666324348e-01);
}

template <class T> GPUSIM_FN T cos_kernel(T x, T lo) {
    const T z = x * x;
    const T w = z * z;
    const T r = z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03
                   + z * 2.48015872894767294178e-05))
                   + w * w * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09
                   + z * -1.13596475577881948265e-11));
    const T half = 0.5 * z;
    const T lead = 1.0 - half;
    return lead + (((1.0 - lead) - half) + (z * r - x * lo));
}

// sin and cos on [-pi/4, pi/4] for float results (msun k_sinf.c, k_cosf.c)
GPUSIM_FN double sin_kernel_short(double x) {
    const double z = x * x;
    const double s = z * x;
    return (x + s * (-0.166666666416265235595 + z * 0.0083333293858894631756))
         + s * (z * z) * (-0.000198393348360966317347 + z * 0.0000027183114939898219064);
}

GPUSIM_FN double cos_kernel_short(double x) {
    const double z = x * x;
    const double w = z * z;
    return ((1.0 + z * -0.499999997251031003120) + w * 0.0416666233237390631894)
         + (w * z) * (-0.00138867637746099294692 + z * 0.0000243904487962774090654);
}

// sin(x + quarters pi/2) for the reduced angle
GPUSIM_FN double sin_of(Angle a) {
    const double v = (a.quarters & 1) ? cos_kernel(a.hi, a.lo) : sin_kernel(a.hi, a.lo);
    return (a.quarters & 2) ? -v : v;
}

GPUSIM_FN double sin_of_short(Angle a) {
    const double v = (a.quarters & 1) ? cos_kernel_short(a.hi) : sin_kernel_short(a.hi);
    return (a.quarters & 2) ? -v : v;
}

GPUSIM_FN Angle quarter_ahead(Angle a) { return {a.hi, a.lo, a.quarters + 1}; }

// Return whether sin(x) = x. For -0, the reduction would lose the sign.
GPUSIM_FN bool is_tiny_angle(double x) { return abs_(x) < 1.0e-9; }
GPUSIM_FN bool is_angle(double x) { return abs_(x) <= MAX_ANGLE; }

// ---- exp and log ---------------------------------------------------------------------------------------------------

// exp(x + tail) for |tail| of about an ulp of x (fdlibm e_exp.c)
GPUSIM_FN double exp_sum(double x, double tail) {
    if (x != x) return double_nan();
    if (x > 710.0) return infinity();
    if (x < -746.0) return 0.0;
    const double k = round_small(x * INV_LN2);
    const double hi = x - k * LN2_HI;
    const double lo = k * LN2_LO - tail;
    const double r = hi - lo;
    const double t = r * r;
    const double c = r - t * (1.66666666666666019037e-01 + t * (-2.77777777770155933842e-03
                   + t * (6.61375632143793436117e-05 + t * (-1.65339022054652515390e-06
                   + t * 4.13813679705723846039e-08))));
    return scale(1.0 - ((lo - (r * c) / (2.0 - c)) - hi), (int)k);
}

// exp for float results, for numbers other than NaN (msun e_expf.c). The result may be outside the range of float.
GPUSIM_FN double exp_short(double x) {
    const double bounded = x > 200.0 ? 200.0 : (x < -200.0 ? -200.0 : x);
    const double k = round_small(bounded * INV_LN2);
    const double r = (bounded - k * LN2_HI) - k * LN2_LO;
    const double t = r * r;
    const double c = r - t * (1.6666625440e-1 + t * -2.7667332906e-3);
    return (1.0 + (r + (r * c) / (2.0 - c))) * power_of_two((int)k);
}

struct Binary {  // m 2^k with m in [sqrt(1/2), sqrt(2))
    double m;
    int k;
};

// of a positive, finite x, including denormals
GPUSIM_FN Binary split(double x) {
    const Bits root_half = 0x3fe6a09e667f3bcdull;
    const bool denormal = x < 2.2250738585072014e-308;
    const Bits bits = to_bits(denormal ? x * 18014398509481984.0 : x) + (0x3ff0000000000000ull - root_half);
    return {from_bits((bits & 0x000fffffffffffffull) + root_half), (int)(bits >> 52) - 1023 - (denormal ? 54 : 0)};
}

// log of a positive, finite x as a sum (fdlibm e_log.c). hi is exact, and lo may be large.
GPUSIM_FN Sum log_sum(double x) {
    const Binary b = split(x);
    const double k = (double)b.k;
    const double f = b.m - 1.0;
    const double s = f / (2.0 + f);
    const double z = s * s;
    const double w = z * z;
    const double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const double odd = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01
                     + w * 1.479819860511658591e-01)));
    const double half = 0.5 * f * f;
    const double hi = k * LN2_HI + f;
    const double rest = f - (hi - k * LN2_HI);  // exact: |k LN2_HI| > |f| or k = 0
    return {hi, rest + (s * (half + (even + odd)) + k * LN2_LO - half)};
}

// log of a positive, finite x for float results (msun e_logf.c)
GPUSIM_FN double log_short(double x) {
    const Binary b = split(x);
    const double f = b.m - 1.0;
    const double s = f / (2.0 + f);
    const double z = s * s;
    const double w = z * z;
    const double r = z * (0.66666662693 + w * 0.28498786688) + w * (0.40000972152 + w * 0.24279078841);
    const double half = 0.5 * f * f;
    return b.k * (LN2_HI + LN2_LO) + (f - (half - s * (half + r)));
}

// ---- atan2 ---------------------------------------------------------------------------------------------------------

// atan(t) for |t| < 7/16 (fdlibm s_atan.c, msun s_atanf.c)
template <class T> GPUSIM_FN T atan_kernel(T t) {
    const T z = t * t;
    const T w = z * z;
    const T odd = z * (3.33333333333329318027e-01 + w * (1.42857142725034663711e-01
                     + w * (9.09088713343650656196e-02 + w * (6.66107313738753120669e-02
                     + w * (4.97687799461593236017e-02 + w * 1.62858201153657823623e-02)))));
    const T even = w * (-1.99999999998764832476e-01 + w * (-1.11111104054623557880e-01
                      + w * (-7.69187620504482999495e-02 + w * (-5.83357013379057348645e-02
                      + w * -3.65315727442169155270e-02))));
    return t - t * (odd + even);
}

GPUSIM_FN double atan_kernel_short(double t) {
    const double z = t * t;
    const double w = z * z;
    return t - t * (z * (3.3333328366e-01 + w * (1.4253635705e-01 + w * 6.1687607318e-02))
                    + w * (-1.9999158382e-01 + w * -1.0648017377e-01));
}

// The angle is base ± (knot + atan(t)). base is a multiple of pi/2, knot is 0, atan(1/2) or pi/4, and atan(t) is small.
// The sum has two parts hi + lo, so that only the last addition rounds.
template <bool SHORT>
GPUSIM_FN double atan2_of(double y, double x) {
    const double ax = abs_(x), ay = abs_(y);
    const bool steep = ay > ax, left = is_negative(x);
    const double top = steep ? ax : ay, bottom = steep ? ay : ax;
    // Test equality first, because both may be infinite. 0 / 0 counts as 0.
    const double u = bottom == 0.0 ? 0.0 : (top == bottom ? 1.0 : top / bottom);
    const bool low = u < 0.4375, middle = u < 0.6875;
    const double t = (low ? u : (middle ? 2.0 * u - 1.0 : u - 1.0)) / (low ? 1.0 : (middle ? 2.0 + u : u + 1.0));
    const double sign = steep != left ? -1.0 : 1.0;
    const double base = steep ? HALF_PI : (left ? PI : 0.0);
    const double base_lo = steep ? HALF_PI_LO : (left ? PI_LO : 0.0);
    const double knot = sign * (low ? 0.0 : (middle ? 4.63647609000806093515e-01 : 0.5 * HALF_PI));
    const double knot_lo = sign * (low ? 0.0 : (middle ? 2.26987774529616870924e-17 : 0.5 * HALF_PI_LO));
    const double hi = base + knot;
    const double lo = (knot - (hi - base)) + (base_lo + knot_lo);
    return with_sign(hi + (sign * (SHORT ? atan_kernel_short(t) : atan_kernel(t)) + lo), y);
}

}  // namespace detail

// Sine of x (rad). The error is 1 ulp for |x| <= 1e6, even near multiples of pi/2. For larger |x|, the error is 1e-15
// absolute (float: 1 ulp and 1e-7). The result is NaN for |x| > 2^31, because such an angle has no accurate digits.
GPUSIM_SHARED double sin(double x) {
    if (!detail::is_angle(x)) return detail::double_nan();
    return detail::is_tiny_angle(x) ? x : detail::sin_of(detail::reduce(x));
}

GPUSIM_SHARED double cos(double x) {
    if (!detail::is_angle(x)) return detail::double_nan();
    return detail::sin_of(detail::quarter_ahead(detail::reduce(x)));
}

GPUSIM_FN float sin(float x) {
    if (!detail::is_angle(x)) return detail::float_nan();
    return detail::is_tiny_angle(x) ? x : (float)detail::sin_of_short(detail::reduce_short(x));
}

GPUSIM_FN float cos(float x) {
    if (!detail::is_angle(x)) return detail::float_nan();
    return (float)detail::sin_of_short(detail::quarter_ahead(detail::reduce_short(x)));
}

// Compute sin and cos with one reduction. The bits are the same as those of sin and cos.
GPUSIM_FN void sincos(double x, double* s, double* c) {
    if (!detail::is_angle(x)) {
        *s = *c = detail::double_nan();
        return;
    }
    const detail::Angle a = detail::reduce(x);
    *s = detail::is_tiny_angle(x) ? x : detail::sin_of(a);
    *c = detail::sin_of(detail::quarter_ahead(a));
}

GPUSIM_FN void sincos(float x, float* s, float* c) {
    if (!detail::is_angle(x)) {
        *s = *c = detail::float_nan();
        return;
    }
    const detail::Angle a = detail::reduce_short(x);
    *s = detail::is_tiny_angle(x) ? x : (float)detail::sin_of_short(a);
    *c = (float)detail::sin_of_short(detail::quarter_ahead(a));
}

// Return e^x. The result is infinite above the range, and denormal or 0 below the range.
GPUSIM_SHARED double exp(double x) { return detail::exp_sum(x, 0.0); }
GPUSIM_FN float exp(float x) { return x != x ? detail::float_nan() : (float)detail::exp_short(x); }

// e^x - 1 without cancellation for small x (fdlibm s_expm1.c with merged branches)
GPUSIM_SHARED double expm1(double x) {
    using namespace detail;
    if (x != x) return double_nan();
    if (x > 710.0) return infinity();
    if (x < -40.0) return -1.0;
    if (abs_(x) < 1.0e-16) return x;  // keeps denormals and -0
    const double k = round_small(x * INV_LN2);
    const double hi = x - k * LN2_HI;
    const double lo = k * LN2_LO;
    const double r = hi - lo;
    const double c = (hi - r) - lo;  // remainder of r
    const double half = 0.5 * r;
    const double z = r * half;
    const double q = 1.0 + z * (-3.33333333333331316428e-02 + z * (1.58730158725481460165e-03
                   + z * (-7.93650757867487942473e-05 + z * (4.00821782732936239552e-06
                   + z * -2.01099218183624371326e-07))));
    const double t = 3.0 - q * half;
    const double e = z * ((q - t) / (6.0 - r * t));
    const double rest = (r * (e - c) - c) - z;  // e^r - 1 = r - rest
    // 2^k (1 + r - rest) - 1. For k > 60, the term -1 is far below an ulp.
    const double one = k > 60.0 ? 1.0 : 1.0 - power_of_two(-(int)k);
    return scale(one - (rest - r), (int)k);
}

GPUSIM_FN float expm1(float x) { return detail::narrow(expm1((double)x)); }

// Natural logarithm: -infinity at 0, NaN for x < 0.
GPUSIM_SHARED double log(double x) {
    if (x == 0.0) return -detail::infinity();
    if (!(x > 0.0)) return detail::double_nan();
    if (x == detail::infinity()) return x;
    const detail::Sum sum = detail::log_sum(x);
    return sum.hi + sum.lo;
}

GPUSIM_FN float log(float x) {
    if (x == 0.0f) return (float)-detail::infinity();
    if (!(x > 0.0f)) return detail::float_nan();
    if (x == (float)detail::infinity()) return x;
    return (float)detail::log_short(x);
}

// Angle of the point (x, y) in [-pi, pi]. Signed zeros and infinities are as in C: atan2(-0, -1) = -pi.
GPUSIM_SHARED double atan2(double y, double x) {
    return x != x || y != y ? detail::double_nan() : detail::atan2_of<false>(y, x);
}

GPUSIM_FN float atan2(float y, float x) {
    return x != x || y != y ? detail::float_nan() : (float)detail::atan2_of<true>(y, x);
}

// Return x^y for x >= 0, and NaN for x < 0. The relative error is about 1e-16 + 3e-17 |y log x|, which is 2e-14 at the
// ends of the range. The result is exact for y = 0, y = 1 and x = 1. As in C, pow(1, y) and pow(x, 0) are 1 even for
// NaN. The function ignores the sign of x = 0.
GPUSIM_SHARED double pow(double x, double y) {
    using namespace detail;
    if (y == 0.0 || x == 1.0) return 1.0;
    if (!(x >= 0.0) || y != y) return double_nan();
    if (y == 1.0) return x;
    if (x == 0.0 || x == infinity()) return (x == 0.0) == (y < 0.0) ? infinity() : 0.0;
    const Sum sum = log_sum(x);
    const double hi = sum.hi + sum.lo;
    const double lo = sum.lo - (hi - sum.hi);
    if (!(abs_(hi * y) <= 800.0)) return (hi > 0.0) == (y > 0.0) ? infinity() : 0.0;
    const Sum product = multiply(hi, y);
    return exp_sum(product.hi, product.lo + lo * y);
}

GPUSIM_FN float pow(float x, float y) {
    using namespace detail;
    if (y == 0.0f || x == 1.0f) return 1.0f;
    if (!(x >= 0.0f) || y != y) return float_nan();
    if (y == 1.0f) return x;
    if (x == 0.0f || x == (float)infinity()) return (x == 0.0f) == (y < 0.0f) ? (float)infinity() : 0.0f;
    return (float)exp_short(log_short(x) * y);
}

// 1 / sqrt(x): infinity with the sign of the zero at 0, NaN below 0.
GPUSIM_FN double rsqrt(double x) { return x >= 0.0 ? 1.0 / ::sqrt(x) : detail::double_nan(); }
GPUSIM_FN float rsqrt(float x) { return x >= 0.0f ? 1.0f / ::sqrtf(x) : detail::float_nan(); }

// Return the nearest integer, with ties to even, and keep the sign of a zero (C's rint).
GPUSIM_FN double round_even(double x) {
    const double size = detail::abs_(x);
    return size < 4503599627370496.0 ? detail::with_sign((size + 4503599627370496.0) - 4503599627370496.0, x) : x;
}

GPUSIM_FN float round_even(float x) {
    // every float is a double, so the method for double is also exact here
    return x != x ? x : (float)round_even((double)x);
}

}  // namespace det

#endif
