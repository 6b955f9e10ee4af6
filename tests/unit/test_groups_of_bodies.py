from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gpusim.compiler.groups import Groups


def test_groups_are_connected_components() -> None:
    rng = np.random.default_rng(4)
    for pairs in (0, 5, 20, 60):
        ends = rng.integers(0, 40, size=(2, pairs))
        groups = Groups()
        joined = sum(groups.join(int(a), int(b)) for a, b in ends.T)
        count, labels = connected_components(coo_array((np.ones(pairs), ends), (40, 40)), directed=False)
        assert joined == 40 - count
        roots = np.array([groups.root(k) for k in range(40)])
        np.testing.assert_array_equal(roots[:, None] == roots, labels[:, None] == labels)


def test_a_long_chain_joined_from_its_end() -> None:
    groups = Groups()
    for k in reversed(range(5000)):
        assert groups.join(k, k + 1)
    assert not groups.join(0, 5000)
    assert groups.root(5000) == groups.root(0)
