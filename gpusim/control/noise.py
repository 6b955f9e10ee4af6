"""Random numbers that depend only on seed, world, sample and stream.

    h = mix(mix(mix(mix(seed) + world) + sample) + stream)

mix is the finalizer of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). A
normal random number is a function of two uniform numbers (Box and Muller, 1958). cuda_kernels/diagram.cu has the same
code in C++.
"""

from __future__ import annotations

import numpy as np

from gpusim import exact_math
from gpusim.typing import Array

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SHIFTS = tuple(map(np.uint64, (30, 27, 31)))
_FACTORS = tuple(map(np.uint64, (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))
_UNIT = 2.0**-53


def _mix(z: Array) -> Array:
    z = z + _GOLDEN
    z = (z ^ (z >> _SHIFTS[0])) * _FACTORS[0]
    z = (z ^ (z >> _SHIFTS[1])) * _FACTORS[1]
    return np.asarray(z ^ (z >> _SHIFTS[2]))


def _hashed(seed: Array | float, world: Array, sample: Array, stream: Array | float) -> Array:
    """Return a hash of the arguments. The hash has the broadcast shape of the arguments."""
    h = np.zeros((), np.uint64)
    with np.errstate(over="ignore"):
        for part in (seed, world, sample, stream):
            h = _mix(h + np.asarray(part, np.float64).astype(np.uint64))
    return h


def uniform_number(seed: Array | float, world: Array, sample: Array, stream: Array | float) -> Array:
    """Return uniform random numbers in [0, 1). The arguments broadcast."""
    return np.asarray((_hashed(seed, world, sample, stream) >> np.uint64(11)) * _UNIT)


def normal_number(seed: Array | float, world: Array, sample: Array, stream: Array | float) -> Array:
    """Return normal random numbers with mean 0 and variance 1. The arguments broadcast."""
    h = _hashed(seed, world, sample, stream)
    first = ((h >> np.uint64(11)) + np.uint64(1)).astype(np.float64) * _UNIT
    with np.errstate(over="ignore"):
        second = (_mix(h) >> np.uint64(11)).astype(np.float64) * _UNIT
    return np.asarray(np.sqrt(-2.0 * exact_math.log(first)) * exact_math.cos((2.0 * exact_math.PI) * second))
