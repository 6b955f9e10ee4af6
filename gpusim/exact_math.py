"""Elementary functions with bit-identical results on every machine: a NumPy version of cuda_kernels/math/detmath.cuh.

The round-off of NumPy's sin, exp and similar functions depends on the library and the processor. The functions of this
module use only bit operations and + - * /. IEEE 754 defines the rounding of these operations. The order of operations
is the same as in detmath.cuh. The coefficients come from fdlibm 5.3, Copyright (C) 1993 by Sun Microsystems, Inc. All
functions accept numbers or arrays of any shape, and return float64 arrays.
"""

from __future__ import annotations

import numpy as np

from gpusim.typing import Array

PI, HALF_PI = 3.141592653589793, 1.5707963267948966
_HALF_PI_LO, _PI_LO = 6.123233995736766e-17, 1.2246467991473532e-16
_TWO_OVER_PI, _INV_LN2 = 6.36619772367581382433e-01, 1.44269504088896338700e00
_LN2_HI, _LN2_LO = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_MAX_ANGLE = 2147483648.0
_ROOT_HALF, _ONE = 0x3FE6A09E667F3BCD, 0x3FF0000000000000
_MANTISSA = 0x000FFFFFFFFFFFFF
_QUIET = {"invalid": "ignore", "over": "ignore", "divide": "ignore", "under": "ignore"}


def _doubles(x: Array | float) -> Array:
    return np.asarray(x, np.float64)


def _round_small(x: Array) -> Array:
    """Return the nearest whole number for |x| < 2^51."""
    return np.asarray((x + 6755399441055744.0) - 6755399441055744.0)


def _power_of_two(k: Array) -> Array:
    """Return 2^k for whole numbers k from -1022 to 1023."""
    return ((k.astype(np.int64) + 1023) << 52).view(np.float64)


def _scale(y: Array, k: Array) -> Array:
    """Return y 2^k. The factor 2^k may be out of the range of float64."""
    whole = k.astype(np.int64)
    half = np.where(whole < 0, -((-whole) // 2), whole // 2)
    return np.asarray(y * _power_of_two(half) * _power_of_two(whole - half))


def _subtract(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a - b and the round-off error of a - b (Knuth)."""
    d = a - b
    t = d - a
    return d, (a - (d - t)) - (b + t)


def _reduce(x: Array) -> tuple[Array, Array, Array]:
    """Return hi, lo and n such that x = n pi/2 + hi + lo, where |hi + lo| is at most about pi/4."""
    n = _round_small(x * _TWO_OVER_PI)
    a, a_lo = _subtract(x - n * 1.5707963267341256, n * 6.077100506303966e-11)
    b, b_lo = _subtract(a, n * 2.0222662487111665e-21)
    tail = (a_lo + b_lo) - n * 8.4784276603689e-32
    hi = b + tail
    wide = (x - n * 1.570796012878418) - n * 3.139164164167596e-07
    wide = (wide - n * 6.223371969669989e-14) - n * 2.0222662487959506e-21
    exact = np.abs(x) <= 1.0e6
    return np.where(exact, hi, wide), np.where(exact, tail - (hi - b), 0.0), n.astype(np.int64)


def _sin_kernel(x: Array, lo: Array) -> Array:
    z = x * x
    r = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * (2.75573137070700676789e-06
        + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))  # fmt: skip
    v = z * x
    return np.asarray(x - ((z * (0.5 * lo - v * r) - lo) - v * -1.66666666666666324348e-01))


def _cos_kernel(x: Array, lo: Array) -> Array:
    z = x * x
    w = z * z
    r = z * (
        4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * 2.48015872894767294178e-05)
    ) + w * w * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))
    half = 0.5 * z
    lead = 1.0 - half
    return np.asarray(lead + (((1.0 - lead) - half) + (z * r - x * lo)))


def _sin_of(hi: Array, lo: Array, quarters: Array) -> Array:
    v = np.where(quarters & 1, _cos_kernel(hi, lo), _sin_kernel(hi, lo))
    return np.where(quarters & 2, -v, v)


def sin(x: Array | float) -> Array:
    """Return the sine of angles in rad, or NaN for angles beyond 2^31 rad."""
    x = _doubles(x)
    good = np.abs(x) <= _MAX_ANGLE
    with np.errstate(**_QUIET):  # type: ignore[arg-type]
        safe = np.where(good, x, 0.0)
        out = np.where(np.abs(safe) < 1.0e-9, safe, _sin_of(*_reduce(safe)))
    return np.where(good, out, np.nan)


def cos(x: Array | float) -> Array:
    """Return the cosine of angles in rad, or NaN for angles beyond 2^31 rad."""
    x = _doubles(x)
    good = np.abs(x) <= _MAX_ANGLE
    hi, lo, quarters = _reduce(np.where(good, x, 0.0))
    return np.where(good, _sin_of(hi, lo, quarters + 1), np.nan)


def _exp_sum(x: Array, tail: Array | float) -> Array:
    """Return exp(x + tail). ``tail`` is a small number below the precision of ``x``."""
    inside = (x <= 710.0) & (x >= -746.0)
    safe = np.where(inside, x, 0.0)
    tail = np.where(inside, tail, 0.0)
    k = _round_small(safe * _INV_LN2)
    hi = safe - k * _LN2_HI
    lo = k * _LN2_LO - tail
    r = hi - lo
    t = r * r
    c = r - t * (1.66666666666666019037e-01 + t * (-2.77777777770155933842e-03 + t * (6.61375632143793436117e-05
        + t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08))))  # fmt: skip
    with np.errstate(**_QUIET):  # type: ignore[arg-type]
        out = _scale(1.0 - ((lo - (r * c) / (2.0 - c)) - hi), k)
    beyond = np.where(x > 710.0, np.inf, np.where(x < -746.0, 0.0, np.nan))
    return np.where(inside, out, beyond)


def exp(x: Array | float) -> Array:
    """Return e^x."""
    return _exp_sum(_doubles(x), 0.0)


def _log_sum(x: Array) -> tuple[Array, Array]:
    """Return the logarithm of positive, finite numbers as a sum of two floats, for additional precision."""
    denormal = x < 2.2250738585072014e-308
    bits = np.asarray(x * np.where(denormal, 18014398509481984.0, 1.0)).view(np.int64) + (_ONE - _ROOT_HALF)
    m = ((bits & _MANTISSA) + _ROOT_HALF).view(np.float64)
    k = ((bits >> 52) - 1023 - np.where(denormal, 54, 0)).astype(np.float64)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01))
    odd = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01
               + w * 1.479819860511658591e-01)))  # fmt: skip
    half = 0.5 * f * f
    hi = k * _LN2_HI + f
    rest = f - (hi - k * _LN2_HI)
    return hi, rest + (s * (half + (even + odd)) + k * _LN2_LO - half)


def log(x: Array | float) -> Array:
    """Return the natural logarithm: -infinity at 0, and NaN for negative numbers."""
    x = _doubles(x)
    good = (x > 0.0) & (x < np.inf)
    hi, lo = _log_sum(np.where(good, x, 1.0))
    return np.where(good, hi + lo, np.where(x == 0.0, -np.inf, np.where(x > 0.0, x, np.nan)))


def _atan_kernel(t: Array) -> Array:
    z = t * t
    w = z * z
    odd = z * (3.33333333333329318027e-01 + w * (1.42857142725034663711e-01
          + w * (9.09088713343650656196e-02 + w * (6.66107313738753120669e-02
          + w * (4.97687799461593236017e-02 + w * 1.62858201153657823623e-02)))))  # fmt: skip
    even = w * (-1.99999999998764832476e-01 + w * (-1.11111104054623557880e-01 + w * (-7.69187620504482999495e-02
           + w * (-5.83357013379057348645e-02 + w * -3.65315727442169155270e-02))))  # fmt: skip
    return np.asarray(t - t * (odd + even))


def atan2(y: Array | float, x: Array | float) -> Array:
    """Return the angle of the vector (x, y), from -pi to pi rad."""
    y, x = np.broadcast_arrays(_doubles(y), _doubles(x))
    ax, ay = np.abs(x), np.abs(y)
    steep, left = ay > ax, np.signbit(x)
    top, bottom = np.where(steep, ax, ay), np.where(steep, ay, ax)
    with np.errstate(**_QUIET):  # type: ignore[arg-type]
        u = np.where(bottom == 0.0, 0.0, np.where(top == bottom, 1.0, top / np.where(bottom == 0.0, 1.0, bottom)))
    low, middle = u < 0.4375, u < 0.6875
    above = np.where(low, u, np.where(middle, 2.0 * u - 1.0, u - 1.0))
    t = above / np.where(low, 1.0, np.where(middle, 2.0 + u, u + 1.0))
    sign = np.where(steep != left, -1.0, 1.0)
    base = np.where(steep, HALF_PI, np.where(left, PI, 0.0))
    base_lo = np.where(steep, _HALF_PI_LO, np.where(left, _PI_LO, 0.0))
    knot = sign * np.where(low, 0.0, np.where(middle, 4.63647609000806093515e-01, 0.5 * HALF_PI))
    knot_lo = sign * np.where(low, 0.0, np.where(middle, 2.26987774529616870924e-17, 0.5 * _HALF_PI_LO))
    hi = base + knot
    lo = (knot - (hi - base)) + (base_lo + knot_lo)
    size = hi + (sign * _atan_kernel(t) + lo)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(np.signbit(y), -np.abs(size), size))


def _multiply(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a b and the round-off error of a b (Dekker)."""
    p = a * b
    ta, tb = 134217729.0 * a, 134217729.0 * b
    a1, b1 = ta - (ta - a), tb - (tb - b)
    a2, b2 = a - a1, b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def pow(x: Array | float, y: Array | float) -> Array:  # noqa: A001 (its name in C and in detmath.cuh)
    """Return x^y for x >= 0. Return NaN for negative x and nonzero y."""
    x, y = np.broadcast_arrays(_doubles(x), _doubles(y))
    plain = (x > 0.0) & (x < np.inf) & ~np.isnan(y)
    with np.errstate(**_QUIET):  # type: ignore[arg-type]
        high, low = _log_sum(np.where(plain, x, 1.0))
        hi = high + low
        lo = low - (hi - high)
        far = ~(np.abs(hi * y) <= 800.0)
        power = np.where(far | ~plain, 0.0, y)
        p, rest = _multiply(hi, power)
        out = _exp_sum(p, rest + lo * power)
    out = np.where(far, np.where((hi > 0.0) == (y > 0.0), np.inf, 0.0), out)
    edge = np.where((x == 0.0) == (y < 0.0), np.inf, 0.0)
    out = np.where((x == 0.0) | (x == np.inf), edge, out)
    out = np.where(y == 1.0, x, out)
    out = np.where((x >= 0.0) & ~np.isnan(y), out, np.nan)
    return np.where((y == 0.0) | (x == 1.0), 1.0, out)
