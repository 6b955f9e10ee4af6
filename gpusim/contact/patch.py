"""Friction of a round patch that slides and spins at once (Contensou 1963, Erismann).

Sliding speed v, spin w, patch radius a, eps = v/(a w). Force mu N f(eps) against the sliding, torque mu N a t(eps)
against the spin. Every point of the patch rubs with mu p against its own velocity, so a ring of radius rho gives

    f = mean (eps + rho sin x)/q,  t = rho mean (rho + eps sin x)/q,  q^2 = eps^2 + rho^2 + 2 eps rho sin x

and the patch their mean over its pressure p(rho). The kernels interpolate in a table over s = eps/(1 + eps).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gpusim.typing import Array

PATCH_NODES = 513
"""Places of the table; eps = 1, where the second derivative is infinite, is one of them."""
_RADII = 400


def ring_friction(eps: Array, rho: Array) -> tuple[Array, Array]:
    """Mean force and torque of a ring, in closed form by complete elliptic integrals.

    Args:
        eps: sliding speed over a w, 0 or more.
        rho: radius of the ring over a, above 0.

    Returns:
        f and t as above.
    """
    from scipy.special import ellipe, ellipk  # heavy to import, and few models need it

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
    """f and t of a whole patch under "uniform" or "hertz" pressure, to about 1e-7.

    Args:
        eps: (n,), 0 or more and finite.
    """
    # Gauss-Legendre on both sides of the ring that rolls, where the integrand has a kink.
    x, weight = np.polynomial.legendre.leggauss(_RADII // 2)
    cut = np.clip(eps, 0.0, 1.0)[:, None]
    rho = np.concatenate([cut * (x + 1) / 2, cut + (1 - cut) * (x + 1) / 2], axis=1)
    part = np.concatenate([cut * weight / 2, (1 - cut) * weight / 2], axis=1)
    density = 2.0 * rho if pressure == "uniform" else 3.0 * rho * np.sqrt(np.maximum(1.0 - rho**2, 0.0))
    force, torque = ring_friction(eps[:, None], np.maximum(rho, 1e-12))
    return np.sum(part * density * force, axis=1), np.sum(part * density * torque, axis=1)


@cache
def patch_table() -> Array:
    """f, t at s = 0 ... 1 for uniform and Hertz pressure, (2, PATCH_NODES, 2)."""
    s = np.linspace(0.0, 1.0, PATCH_NODES)
    eps = s[:-1] / (1.0 - s[:-1])
    rows = []
    for pressure in ("uniform", "hertz"):
        force, torque = patch_friction(eps, pressure)
        rows.append(np.stack([np.append(force, 1.0), np.append(torque, 0.0)], axis=1))
    return np.stack(rows)
