"""Order of convergence, and the energy of a free chain."""

from __future__ import annotations

import pytest

from tests.backends import FASTEST, on_backends

from .bars import CHAIN, MIN_ORDER, ORDERS, failures, order
from .cases import run

pytestmark = pytest.mark.nightly

HORIZON = {"A04": 0.5, "A05": 0.3, "B01": 0.5, "C03": 0.3, "E01": 0.3}


@pytest.mark.parametrize(("case", "backend"), on_backends(ORDERS, ["C03"]))
def test_second_order(case, backend):
    steps, horizon = ORDERS[case]
    horizon = HORIZON[case] if backend == "numpy" else horizon
    errors = [run(case, backend=backend, dt=dt, horizon=horizon).max_error for dt in steps]
    assert order(steps, errors) >= MIN_ORDER


def test_energy_of_a_free_chain():
    result = run("free_chain", backend=FASTEST, horizon=60.0 if FASTEST == "native" else 6.0)
    assert not failures(result, CHAIN.bar)


def test_extrapolated_velocities_keep_joints_closed():
    # Without extrapolation, the gap is 2.4e-10 m (NumPy, 1 s: 1.2e-12 m).
    native = FASTEST == "native"
    result = run("free_chain", backend=FASTEST, horizon=3.0 if native else 1.0)
    assert result.joint_gap < (1.2e-10 if native else 3e-13)
