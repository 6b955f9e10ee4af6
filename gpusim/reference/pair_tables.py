"""Properties of shape pairs: laws, moduli and radii of curvature."""

from __future__ import annotations

import numpy as np

from gpusim.compiler.contact_topology import ContactTopology
from gpusim.contact.material import COMBINE
from gpusim.typing import Array

# Columns of the materials of pairs.
MODULUS_COLUMN, LAW_COLUMN = 0, 1


class PairTables:
    """Properties of shape pairs. All methods take n pairs as two arrays of shape indices ``a`` and ``b``, (n,) each."""

    def __init__(self, t: ContactTopology) -> None:
        self.t = t
        rows = zip(t.included, t.include_material, strict=True)
        pair_materials = [(a * t.num_shapes + b, m) for a, row in enumerate(rows) for b, m in zip(*row, strict=True)]
        custom = sorted(x for x in pair_materials if x[1] >= 0)
        self._key = np.array([key for key, _ in custom], dtype=np.int64)
        self._row = np.array([row for _, row in custom], dtype=np.int64)

    def custom_material(self, a: Array, b: Array) -> Array:
        """Return the index in ``ContactTopology.materials`` of each pair's custom material, or -1 without one, (n,)."""
        if not self._key.size:
            return np.full(a.shape, -1)
        key = a * self.t.num_shapes + b
        at = np.minimum(np.searchsorted(self._key, key), self._key.size - 1)
        return np.where(self._key[at] == key, self._row[at], -1)

    def surfaces(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return the indices of both shapes in the material parameter arrays, (n,) each.

        For a pair with a custom material, both indices are the index of this material.
        """
        row = self.custom_material(a, b)
        column = self.t.num_shapes + row
        return np.where(row >= 0, column, a), np.where(row >= 0, column, b)

    def rubbing_surfaces(self, a: Array, b: Array) -> tuple[Array, Array, Array]:
        """Return the material indices of both shapes, and the friction combination rule of each pair, (n,) each."""
        rule = np.concatenate([self.t.rule, np.zeros(len(self.t.materials), np.int64)])
        above = (rule[a] >> 2) - (rule[b] >> 2)
        alone = (a == b) | (above != 0)
        chosen = np.where(alone, COMBINE.index("max"), np.maximum(rule[a], rule[b]) & 3)
        return np.where(above < 0, b, a), np.where(above > 0, a, b), chosen

    def law(self, a: Array, b: Array) -> Array:
        """Return the parameters of each pair's contact law, (n, len(``ContactLaw.numbers``))."""
        row, number = self.custom_material(a, b), np.maximum(self.t.law[a], self.t.law[b])
        if self._key.size:
            number = np.where(row >= 0, self.t.materials[row, LAW_COLUMN].astype(np.int64), number)
        law: Array = self.t.laws[number]
        return law

    def modulus(self, a: Array, b: Array) -> Array:
        """Return the effective modulus E* (Pa) of each pair, (n,)."""
        row, e = self.custom_material(a, b), self.t.modulus
        both = 1.0 / (1.0 / e[a] + 1.0 / e[b])
        return np.where(row >= 0, self.t.materials[row, MODULUS_COLUMN], both) if self._key.size else both

    def radius(self, a: Array, b: Array) -> Array:
        """Return the radius of relative curvature (m) of each pair, (n,), or 0 for flat surfaces."""
        curvature = self.t.curvature[a] + self.t.curvature[b]
        return np.where(curvature > 0.0, 1.0 / np.where(curvature > 0.0, curvature, 1.0), 0.0)
