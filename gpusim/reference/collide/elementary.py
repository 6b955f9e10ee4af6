"""Elementary functions with the bits of cuda_kernels/detmath.cuh, compiled by numba.

The same polynomials (fdlibm 5.3; its notice stands in detmath.cuh) in the same order of operations: the C library's
own functions round differently from machine to machine. ``det_exp``, ``det_log`` and ``det_power`` mirror det::exp,
det::log and det::pow for doubles, within 1 ulp.
"""

from __future__ import annotations

import math

from gpusim.reference.collide.compiled import inner, outer

INV_LN2 = 1.44269504088896338700e00
LN2_HI = 6.93147180369123816490e-01
LN2_LO = 1.90821492927058770002e-10
ROOT_HALF = 0.7071067811865476
ROUND = 6755399441055744.0  # adding and subtracting it rounds to an integer, ties to even
SPLIT = 134217729.0  # 2^27 + 1 splits 53 bits in two halves


@inner
def exp_sum(x: float, tail: float) -> float:
    """exp(x + tail) for |tail| of about an ulp of x."""
    if x != x:
        return math.nan
    if x > 710.0:
        return math.inf
    if x < -746.0:
        return 0.0
    k = (x * INV_LN2 + ROUND) - ROUND
    hi = x - k * LN2_HI
    lo = k * LN2_LO - tail
    r = hi - lo
    t = r * r
    c = r - t * (
        1.66666666666666019037e-01
        + t
        * (
            -2.77777777770155933842e-03
            + t * (6.61375632143793436117e-05 + t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08))
        )
    )
    return math.ldexp(1.0 - ((lo - (r * c) / (2.0 - c)) - hi), int(k))


@inner
def log_sum(x: float) -> tuple[float, float]:
    """log of a positive, finite x as hi + lo; lo is not small against hi, but hi has no error."""
    m, e = math.frexp(x)
    if m < ROOT_HALF:
        m, e = 2.0 * m, e - 1
    k = float(e)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01))
    odd = z * (
        6.666666666666735130e-01
        + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))
    )
    half = 0.5 * f * f
    hi = k * LN2_HI + f
    rest = f - (hi - k * LN2_HI)
    return hi, rest + (s * (half + (even + odd)) + k * LN2_LO - half)


@outer
def det_exp(x: float) -> float:
    """e^x."""
    return exp_sum(x, 0.0)


@outer
def det_log(x: float) -> float:
    """Natural logarithm; -infinity at 0, NaN below it."""
    if x == 0.0:
        return -math.inf
    if not x > 0.0:
        return math.nan
    if x == math.inf:
        return x
    hi, lo = log_sum(x)
    return hi + lo


@outer
def det_power(x: float, y: float) -> float:
    """x^y for x >= 0, NaN below 0."""
    if y == 0.0 or x == 1.0:
        return 1.0
    if not x >= 0.0 or y != y:
        return math.nan
    if y == 1.0:
        return x
    if x == 0.0 or x == math.inf:
        return math.inf if (x == 0.0) == (y < 0.0) else 0.0
    sum_hi, sum_lo = log_sum(x)
    hi = sum_hi + sum_lo
    lo = sum_lo - (hi - sum_hi)
    if not abs(hi * y) <= 800.0:
        return math.inf if (hi > 0.0) == (y > 0.0) else 0.0
    p = hi * y
    ta = SPLIT * hi
    tb = SPLIT * y
    a1 = ta - (ta - hi)
    a2 = hi - a1
    b1 = tb - (tb - y)
    b2 = y - b1
    return exp_sum(p, (((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2) + lo * y)
