"""How the scalar loops of the narrow phase are compiled.

Division by zero gives infinity or NaN, as in C++. Loops that only other loops call have no entry from Python: making
one for shapes, with their many arrays, takes longer than compiling the loop itself.
"""

from __future__ import annotations

import numba

outer = numba.njit(cache=True, error_model="numpy")
inner = numba.njit(  # type: ignore[call-overload, unused-ignore]
    cache=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
)
