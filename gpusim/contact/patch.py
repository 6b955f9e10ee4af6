"""Friction of a round contact patch that slides and spins at the same time (Contensou 1963, Erismann).

The symbols are the sliding speed v, the spin w (angular velocity about the normal), the patch radius a, the normal
force N, and eps = v/(a w). The force mu N f(eps) opposes the sliding. The torque mu N a t(eps) opposes the spin. At a
point with the pressure p, the friction mu p opposes the velocity of this point. For a ring with the radius rho a, f and
t are means over the angle x around the ring:

    f = mean (eps + rho sin x)/q,  t = rho mean (rho + eps sin x)/q,  q^2 = eps^2 + rho^2 + 2 eps rho sin x

For the whole patch, f and t are means over all rings, weighted by their normal forces. The kernels interpolate a table
over s = eps/(1 + eps).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gpusim.typing import Array

PATCH_NODES = 513
"""Number of nodes of the table. eps = 1 is a node, because the second derivative is infinite at eps = 1."""
_RADII = 400


def ring_friction(eps: Array, rho: Array) -> tuple[Array, Array]:
    """Return the factors f (force) and t (torque) of a ring, from complete elliptic integrals.

    Args:
        eps: sliding speed divided by (patch radius * spin), at least 0.
        rho: radius of the ring divided by the patch radius, positive.

    Returns:
        The factors f and t of the ring, as in the module docstring.
    """
    from scipy.special import ellipe, ellipk  # the import is slow

    total = (eps + rho) ** 2
    m = np.clip(4.0 * eps * rho / total, 0.0, 1.0)
    e, k = ellipe(m), ellipk(np.minimum(m, 1.0 - 1e-16))
    size = np.sqrt(total)
    with np.errstate(divide="ignore", invalid="ignore"):
        # mean q = 2/pi (eps + rho) E; mean 1/q = 2/(pi (eps + rho)) K.
        mean, inverse = 2.0 / np.pi * size * e, 2.0 / (np.pi * size) * k
        force = np.where(eps > 0.0, (mean + (eps**2 - rho**2) * inverse) / (2.0 * eps), 0.0)
        torque = 0.5 * (mean + (rho**2 - eps**2) * inverse)
    return force, torque


def patch_friction(eps: Array, pressure: str) -> tuple[Array, Array]:
    """Return the factors f (force) and t (torque) of a patch with "uniform" or "hertz" pressure.

    The errors are about 1e-7.

    Args:
        eps: sliding speed divided by (patch radius * spin), at least 0 and finite, (n,).
    """
    # The integrand has a kink at the ring with v = w rho a. Integrate (Gauss-Legendre) separately on both sides of the
    # kink.
    x, weight = np.polynomial.legendre.leggauss(_RADII // 2)
    kink = np.clip(eps, 0.0, 1.0)[:, None]
    rho = np.concatenate([kink * (x + 1) / 2, kink + (1 - kink) * (x + 1) / 2], axis=1)
    widths = np.concatenate([kink * weight / 2, (1 - kink) * weight / 2], axis=1)
    density = 2.0 * rho if pressure == "uniform" else 3.0 * rho * np.sqrt(np.maximum(1.0 - rho**2, 0.0))
    force, torque = ring_friction(eps[:, None], np.maximum(rho, 1e-12))
    return np.sum(widths * density * force, axis=1), np.sum(widths * density * torque, axis=1)


@cache
def patch_table() -> Array:
    """Return a table of f and t over s = eps/(1 + eps), for uniform and Hertz pressure, (2, PATCH_NODES, 2)."""
    s = np.linspace(0.0, 1.0, PATCH_NODES)
    eps = s[:-1] / (1.0 - s[:-1])
    rows = []
    for pressure in ("uniform", "hertz"):
        force, torque = patch_friction(eps, pressure)
        rows.append(np.stack([np.append(force, 1.0), np.append(torque, 0.0)], axis=1))
    return np.stack(rows)
