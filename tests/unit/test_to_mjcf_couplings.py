"""MJCF export of couplings, ropes, latches, tendons and forces, compared with MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Transform
from gpusim.exporters import to_mjcf
from gpusim.importers import load_mjcf

from .test_to_mjcf import TURN, Z, about, after, compiled, mujoco


def test_mimics_with_a_curve():
    b = ModelBuilder(gravity=(0, 0, 0))
    for k, angle in enumerate((0.3, 0.6)):
        body = b.add_body(1.0, (0.1, 0.1, 0.1), xform=about(Z, angle, (k, 0, 0)))
        b.add_joint_revolute(-1, body, Transform((k, 0, 0)), axis=(0, 0, 1), label=f"j{k}")
    b.add_mimic(1, 0, 0.5, offset=0.6 - 0.15 - 0.8 * 0.09, curve=(0.8, 0.0, 0.0), label="cam")
    b.add_joint_force(0, label="push")
    b.set_command_map("push", initial=0.5)
    model, data, report = compiled(b)
    assert report.exact and np.allclose(model.eq_data[0][:5], (0, 0.5 + 2 * 0.8 * 0.3, 0.8, 0, 0), atol=1e-12)
    back, again = load_mjcf(to_mjcf(b)[0], pose="start")
    assert again.exact and np.allclose(back.couplings[0].curve, (-0.8, 0, 0))
    assert np.allclose([t[2] for t in back.couplings[0].terms], (-0.5, 1.0))
    assert back.couplings[0].offset == pytest.approx(b.couplings[0].offset, abs=1e-12)
    total = b.add_tendon([(0, 1.0), (1, 1.0)], label="t")
    b.add_mimic(total, 0, curve=(1.0, 0, 0), label="square")  # q1 = q0^2: without a linear term
    model, _, report = compiled(b)
    assert report.exact and np.allclose(model.eq_data[1][:5], (0.09 - 0.6, 0.6, 1, 0, 0), atol=1e-12)
    third = b.add_joint_revolute(-1, b.add_body(1.0, (0.1, 0.1, 0.1)), axis=(0, 0, 1))
    b.add_mimic(b.add_tendon([(1, 1.0), (third, 1.0)]), 0, curve=(1.0, 0, 0), label="odd")
    assert "coupling 'odd': it follows a curve" in compiled(b)[2].first_loss()


@pytest.mark.parametrize("frame", ["world", "body"])
def test_a_force_and_a_torque_with_one_command(frame):
    b = ModelBuilder()
    body = b.add_body(1.0, (0.1, 0.2, 0.15), com=(0.1, 0, 0), xform=TURN, label="drone")
    b.add_force(body, (1, 2, 9), (0, 0.1, 0), frame, "rotor", torque=(0.2, -0.1, 0.3))
    model, data, report = compiled(b)
    assert report.exact and model.nu == 1 and after(b, model, data) < 2e-6
    read, back = load_mjcf(to_mjcf(b)[0], pose="start")
    assert back.exact and after(read, model, data) < 2e-6


@pytest.mark.parametrize("other", [1.0, 0.2])
def test_shares_of_gravity_above_one(other):
    """MuJoCo ignores gravcomp if no body has a positive value."""
    b = ModelBuilder()
    for k, share in enumerate((2.0, other)):
        b.add_body(2.0, (0.1, 0.1, 0.1), gravity_scale=share, xform=Transform((k, 0, 0)))
    model, data, report = compiled(b)
    assert report.exact and after(b, model, data) < 2e-6
    assert load_mjcf(to_mjcf(b)[0])[0].bodies[0].gravity_scale == 2.0


def test_damping_of_a_rope_is_no_damping_of_the_free_body():
    b = ModelBuilder()
    ball = b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform((0, 0, -1)), linear_velocity=(1, 0, 0), label="ball")
    b.add_tendon([(b.add_joint_distance(-1, ball), 1.0)], damping=5.0)
    model, data, report = compiled(b)
    assert report.exact and not model.dof_damping.any() and after(b, model, data) < 1e-5


@pytest.mark.parametrize("ropes", [1, 2, 3])
def test_couplings_of_ropes(ropes):
    b = ModelBuilder()
    ball = b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform((0.5, 0, -1)), label="ball")
    post = b.add_body(1.0, (0.1, 0.1, 0.1), label="post")
    b.add_joint_prismatic(-1, post, axis=(0, 0, 1), label="lift")
    terms = [(b.add_joint_distance(-1, ball, Transform((x, 0, 0))), 1.0) for x in (0, 1)][: ropes - ropes // 2]
    b.add_linear_coupling([*terms, (0, -2.0)][:ropes], label="rope")
    model, data, report = compiled(b)
    assert report.exact is (ropes < 3) and model.neq == (ropes < 3)
    assert ropes == 3 or after(b, model, data) < 1e-4


@pytest.mark.parametrize("branched", [True, False])
@pytest.mark.parametrize("fixed", [True, False])
def test_armature_of_a_tendon_over_several_branches(branched, fixed):
    b = ModelBuilder()
    for k in range(2):
        parent, place = (-1, (k, 0, 0)) if branched else (k - 1, (1, 0, 0))
        child = b.add_body(1.0, (0.1, 0.1, 0.1), com=(0.2, 0, 0), xform=Transform((k, 0, 0)))
        b.add_joint_revolute(parent, child, Transform(place if k else (0, 0, 0)), axis=(0, 1, 0))
    terms = [(0, 1.0), (1, -2.0)]
    if not fixed:
        terms = [(b.add_joint_distance(0, 1, Transform((0, 0, 0.3)), Transform((0.4, 0, 0.1))), 1.0)]
    b.add_tendon(terms, armature=0.3, label="rotor")
    model, data, report = compiled(b)
    assert report.exact is not branched
    if branched:
        assert "joint 'rotor': its armature acts over several branches" in report.first_loss()
    else:
        assert after(b, model, data) < 1e-5


@pytest.mark.parametrize("rotation", [True, False])
@pytest.mark.parametrize("attached", [True, False])
def test_latches_become_welds_and_connects(rotation, attached):
    b = ModelBuilder()
    ball = b.add_body(1.0, (0.1, 0.1, 0.1), com=(0.1, 0, 0), label="ball")
    b.add_latch(-1, ball, attached=attached, rotation=rotation, label="grip")
    model, data, report = compiled(b)
    kind = mujoco.mjtEq.mjEQ_WELD if rotation else mujoco.mjtEq.mjEQ_CONNECT
    assert report.exact and list(model.eq_type) == [kind] and list(model.eq_active0) == [attached]
    assert after(b, model, data) < 1e-3
    latch = load_mjcf(to_mjcf(b)[0], switchable=["grip"])[0].joints[-1]
    assert latch.kind == "latch" and bool(latch.params["limit_upper"][0] == 0.0) is attached
    b.add_latch(-1, ball, break_force=3.0, label="weak")
    assert "joint 'weak': its break force" in compiled(b)[2].first_loss()
