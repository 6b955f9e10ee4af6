from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Transform
from gpusim.description.actuator_kinds import _KINDS, ActuatorType, Parameter, register
from gpusim.description.references import ACTUATOR, AS_IS, BODY, JOINT, SHAPE, direction_on, point_on
from tests.message_snapshot import naming

from .helpers import PLACE, ball_body

ENDS = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])


class Differential(ActuatorType):
    name: ClassVar[str] = "differential"
    prefix: ClassVar[str] = "differential"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("teeth", "-", "number of teeth"),)
    references = {
        "joint_b": JOINT, "tendon": JOINT, "axis_b": AS_IS, "pump": ACTUATOR, "track": SHAPE, "spare": BODY,
        "bodies": BODY, "ends": point_on("bodies"), "ways": direction_on("bodies"),
    }  # fmt: skip


@pytest.fixture
def differential() -> Iterator[type[ActuatorType]]:
    register(Differential)
    yield Differential
    _KINDS.forget("differential")


def machine(**more: Any) -> ModelBuilder:
    b = ModelBuilder()
    bodies = [ball_body(b, xform=Transform((k, 0.0, 0.0))) for k in range(2)]
    hinges = [b.add_joint_revolute(-1, body) for body in bodies]
    pump = b.add_torsion_spring(hinges[0], 1.0)
    track = b.add_shape_sphere(bodies[1], 0.1)
    params: dict[str, Any] = {
        "joint_b": hinges[1], "tendon": [hinges[1], hinges[0]], "axis_b": 0, "pump": pump, "track": track, "spare": -1,
        "bodies": [-1, bodies[1]], "ends": ENDS, "ways": ENDS, "teeth": 12, "note": "steel", "slips": True,
    }  # fmt: skip
    b.add_actuator("differential", "gear", params | more)
    return b


def test_copies_refer_to_copies(differential: type[ActuatorType]) -> None:
    b = ModelBuilder()
    first, second = Transform((5.0, 0.0, 0.0)), PLACE
    b.add_builder(machine(), first, "left_")
    b.add_builder(machine(), second, "right_")
    left, right = (b.actuators[k].params for k in (1, 3))
    assert [left[n] for n in ("joint_b", "tendon", "pump", "track", "bodies")] == [1, [1, 0], 0, 0, [-1, 1]]
    assert [right[n] for n in ("joint_b", "tendon", "pump", "track", "bodies")] == [3, [3, 2], 2, 1, [-1, 3]]
    for params, pose in ((left, first), (right, second)):
        assert [params[n] for n in ("axis_b", "spare", "teeth", "note", "slips")] == [0, -1, 12, "steel", True]
        np.testing.assert_array_equal(params["ends"], [pose.apply(ENDS[0]), ENDS[1]])
        np.testing.assert_array_equal(params["ways"], [pose.rotate(ENDS[0]), ENDS[1]])
    assert b.finalize().labels("actuator")[3] == "right_gear"


def test_copies_on_a_body_refer_to_it_for_the_world(differential: type[ActuatorType]) -> None:
    b = ModelBuilder()
    host = ball_body(b)
    b.add_builder(machine(pump=-1, tendon=[-1, 0]), PLACE, "left_", host)
    params = b.actuators[1].params
    assert [params[n] for n in ("spare", "bodies", "pump", "tendon")] == [host, [host, 2], -1, [-1, 0]]
    np.testing.assert_array_equal(params["ends"], [PLACE.apply(ENDS[0]), ENDS[1]])
    np.testing.assert_array_equal(params["ways"], [PLACE.rotate(ENDS[0]), ENDS[1]])


@pytest.mark.parametrize("value", [0, np.int64(0), [0, 1], np.zeros(2, dtype=int), (0.1, 0.2, 0.3), ENDS])
def test_what_may_be_an_index_must_be_declared(differential: type[ActuatorType], value: Any) -> None:
    with pytest.raises(ModelError, match=naming("'gear' wheel")):
        machine(wheel=value)
    with pytest.raises(ModelError):
        ModelBuilder().add_actuator("no such", None, {})


def test_a_misspelt_parameter_is_named() -> None:
    b = ModelBuilder()
    b.add_joint_revolute(-1, ball_body(b))
    for value in (1, 1.0, (1.0, 2.0, 3.0), "stiff"):
        with pytest.raises(ModelError, match=naming("servo 'x' 'stifness'")):
            b.add_actuator("servo", "x", {"joint": 0, "axis": 0, "stifness": value})
