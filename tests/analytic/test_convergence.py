"""Order of convergence, and the energy of a free chain."""

from __future__ import annotations

import pytest

from .bars import CHAIN, LEAST_ORDER, ORDERS, failures, order
from .cases import run

#: Shorter than in the table, which follows the same steps for longer.
HORIZON = {"A04": 0.5, "A05": 0.3, "B01": 0.5, "C03": 0.3, "E01": 0.3}


@pytest.mark.parametrize("case", ORDERS)
def test_second_order(case):
    steps, _ = ORDERS[case]
    errors = [run(case, dt=dt, horizon=HORIZON[case]).max_error for dt in steps]
    assert order(steps, errors) >= LEAST_ORDER


def test_energy_of_a_free_chain():
    result = run("free_chain", horizon=6.0)  # the table follows it for 60 s
    assert not failures(result, CHAIN.bar)
