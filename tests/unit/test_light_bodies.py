import numpy as np
import pytest

import gpusim
from gpusim.reference.light_bodies import CARRIED, MIN_FRACTION, heavy_share


def chain_shares(*masses, first=-1):
    b = gpusim.ModelBuilder()
    for number, mass in enumerate(masses):
        b.add_body(mass, (mass, mass, mass))
        b.add_joint_revolute(first if number == 0 else number - 1, number, axis=(0, 1, 0))
    model = b.finalize()
    return heavy_share(model).reshape(-1, model.topology.block)[:, 0]


def test_rows_of_usual_masses_count_in_full():
    assert (chain_shares(1000.0, 1.0, 0.2, 500.0) == 1.0).all()


def test_links_count_with_the_mass_of_what_they_carry():
    shares = chain_shares(10.0, 1e-5, 1e-5, 4.0)
    from_ten, from_four = 1e-5 / (CARRIED * 10.0), 1e-5 / (CARRIED * 4.0)
    np.testing.assert_allclose(shares, [1.0, from_ten, from_ten, from_ten])
    np.testing.assert_allclose(chain_shares(1e-5, 1e-5, 4.0), [from_four] * 3)


def test_the_share_stays_above_round_off():
    np.testing.assert_array_equal(chain_shares(1e-12, 1.0), [MIN_FRACTION, MIN_FRACTION])


def test_kinematic_neighbors_have_no_mass():
    b = gpusim.ModelBuilder()
    mover = b.add_body(1e9, (1.0, 1.0, 1.0), kinematic=True)
    link = b.add_body(1e-3, (1e-3, 1e-3, 1e-3))
    b.add_joint_revolute(mover, link, axis=(0, 1, 0))
    assert heavy_share(b.finalize()) == pytest.approx(1.0)
