"""How the scalar loops of the narrow phase are compiled.

Loops that only other loops call have no entry from Python: making one for shapes, with their many arrays, takes longer
than compiling the loop itself.
"""

from __future__ import annotations

from functools import partial

from gpusim.compiled import compiled

outer = compiled
inner = partial(compiled, no_cpython_wrapper=True, no_cfunc_wrapper=True)
