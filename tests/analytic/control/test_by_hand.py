from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from tests.analytic.control.sampled import respond

U = np.array([0.0, 0.3, 0.6, 1.4, 0.9, 0.2, -0.4, -1.2, 0.1])


def out(kind: str, u: object, **parameters: object) -> np.ndarray:
    return respond(kind, 10.0, {"in": u}, **parameters)["out"]


@pytest.mark.parametrize("kind, parameters, wanted", [
    ("limiter", {"lower": -0.5, "upper": 1.0}, [0.0, 0.3, 0.6, 1.0, 0.9, 0.2, -0.4, -0.5, 0.1]),
    ("limiter", {"upper": 0.5}, [0.0, 0.3, 0.5, 0.5, 0.5, 0.2, -0.4, -1.2, 0.1]),
    ("dead_zone", {"lower": -0.3, "upper": 0.5}, [0.0, 0.0, 0.1, 0.9, 0.4, 0.0, -0.1, -0.9, 0.0]),
    ("backlash", {"width": 0.8}, [0.0, 0.0, 0.2, 1.0, 1.0, 0.6, 0.0, -0.8, -0.3]),
    ("backlash", {"width": 0.8, "initial": 2.0}, [0.4, 0.4, 0.4, 1.0, 1.0, 0.6, 0.0, -0.8, -0.3]),
    ("quantizer", {"step": 0.5}, [0.0, 0.5, 0.5, 1.5, 1.0, 0.0, -0.5, -1.0, 0.0]),
    ("relay", {"lower": 0.1, "upper": 0.6, "off": -2.0, "on": 3.0}, [-2, -2, 3, 3, 3, 3, -2, -2, -2]),
    ("relay", {"lower": 0.0, "upper": 0.9, "initial": True}, [1, 1, 1, 1, 1, 1, 0, 0, 0]),
    ("lookup", {"x": [-1, 0, 1], "y": [2, 0, 10]}, [0.0, 3.0, 6.0, 10.0, 9.0, 2.0, 0.8, 2.0, 1.0]),
    ("lookup", {"x": [-1, 0, 1], "y": [2, 0, 10], "extend": True}, [0.0, 3.0, 6.0, 14.0, 9.0, 2.0, 0.8, 2.4, 1.0]),
    ("rate_limiter", {"rise": 4.0, "fall": 6.0}, [0.0, 0.3, 0.6, 1.0, 0.9, 0.3, -0.3, -0.9, -0.5]),
    ("rate_limiter", {"rise": 5.0}, [0.0, 0.3, 0.6, 1.1, 0.9, 0.4, -0.1, -0.6, -0.1]),
    ("abs", {}, [0.0, 0.3, 0.6, 1.4, 0.9, 0.2, 0.4, 1.2, 0.1]),
    ("sign", {}, [0, 1, 1, 1, 1, 1, -1, -1, 1]),
    ("edge_detector", {}, [0, 0, 1, 0, 0, 0, 0, 0, 0]),
    ("edge_detector", {"which": "falling"}, [0, 0, 0, 0, 0, 1, 0, 0, 0]),
    ("edge_detector", {"which": "both", "initial": True}, [1, 0, 1, 0, 0, 1, 0, 0, 0]),
])  # fmt: skip
def test_of_one_input(kind: str, parameters: dict[str, object], wanted: list[float]) -> None:
    np.testing.assert_allclose(out(kind, U, **parameters), wanted, atol=1e-14)


@pytest.mark.parametrize("kind, parameters", [
    ("limiter", {"lower": -1.0, "upper": 1.0}), ("pid", {"lower": -1.0, "upper": 1.0}), ("norm", {}), ("sign", {}),
    ("lookup", {"x": [0, 1], "y": [5, 6]}), ("trigonometry", {"function": "asin"}), ("rate_limiter", {"rise": 1.0}),
    ("backlash", {"width": 0.1}), ("dead_zone", {}), ("integrator", {"lower": -1.0, "upper": 1.0}),
])  # fmt: skip
def test_a_nan_passes_bounds(kind: str, parameters: dict[str, object]) -> None:
    """A bound would hide it, and a motor would run at full command."""
    assert np.isnan(out(kind, [0.0, np.nan, np.nan], **parameters)[2])


@pytest.mark.parametrize("text", ["min(a, b)", "max(b, a)", "min(b, a)", "a ** 0.5", "pow(a, b)", "sqrt(a)"])
def test_a_nan_passes_functions(text: str) -> None:
    nan = np.array([np.nan])
    assert np.isnan(respond("expression", 10.0, {"a": nan, "b": np.ones(1)}, text=text, names=["a", "b"])["out"][0])


def test_a_rate_limiter_begins_where_its_input_does() -> None:
    np.testing.assert_allclose(out("rate_limiter", U + 7.0, rise=100.0), U + 7.0, atol=1e-14)


def test_table_of_two_inputs() -> None:
    x, y, z = [0.0, 1.0, 3.0], [-1.0, 1.0], [[0.0, 2.0, 3.0], [5.0, -1.0, 4.0]]
    rng = np.random.default_rng(1)
    at = {"x": rng.uniform(-1.0, 4.0, 200), "y": rng.uniform(-2.0, 2.0, 200)}
    inside = np.clip(at["y"], -1.0, 1.0), np.clip(at["x"], 0.0, 3.0)
    wanted = RegularGridInterpolator((y, x), np.array(z))(np.stack(inside, axis=1))
    np.testing.assert_allclose(respond("lookup2d", 10.0, at, x=x, y=y, z=z)["out"], wanted, atol=1e-13)


def test_latch() -> None:
    found = respond(
        "sr_latch", 10.0, {"set": np.array([0, 1, 0, 0, 1, 1, 0.0]), "reset": np.array([0, 0, 0, 1, 1, 0, 0.0])}
    )
    np.testing.assert_array_equal(found["out"], [0, 1, 1, 0, 0, 1, 1])


def test_hold() -> None:
    found = respond("sample_hold", 10.0, {"in": U, "sample": np.array([0, 1, 0, 0, 1, 0, 0, 0, 1.0])}, initial=9.0)[
        "out"
    ]
    np.testing.assert_array_equal(found, [9.0, 0.3, 0.3, 0.3, 0.9, 0.9, 0.9, 0.9, 0.1])


def test_counter() -> None:
    up, down = np.array([1, 1, 0, 1, 0, 1, 0, 1, 0, 0.0]), np.array([0, 0, 0, 0, 1, 0, 0, 1, 0, 1.0])
    inputs = {"up": up, "down": down}
    np.testing.assert_array_equal(respond("counter", 10.0, inputs)["out"], [1, 1, 1, 2, 1, 2, 2, 2, 2, 1])
    inputs["reset"] = np.array([0, 0, 0, 0, 0, 0, 1, 0, 0, 0.0])
    np.testing.assert_array_equal(respond("counter", 10.0, inputs)["out"], [1, 1, 1, 2, 1, 2, 0, 0, 0, -1])
    turns = respond("counter", 10.0, {"up": np.tile([1.0, 0.0], 4)}, modulo=3)["out"]
    np.testing.assert_array_equal(turns, [1, 1, 2, 2, 0, 0, 1, 1])


def test_state_machine() -> None:
    transitions = [["rest", "run", "go"], ["run", "rest", "stop"], ["run", "done", 0.3]]
    machine = {"states": ["rest", "run", "done"], "transitions": transitions}
    go, stop = np.array([0, 1, 0, 0, 1, 0, 0, 0, 0.0]), np.array([0, 0, 0, 1, 0, 0, 0, 0, 0.0])
    found = respond("state_machine", 10.0, {"go": go, "stop": stop}, **machine)
    np.testing.assert_array_equal(found["state"], [0, 1, 1, 0, 1, 1, 1, 2, 2])
    np.testing.assert_allclose(found["time"], [0, 0, 0.1, 0, 0, 0.1, 0.2, 0, 0.1], atol=1e-15)
    np.testing.assert_array_equal(found["run"], found["state"] == 1)
    np.testing.assert_array_equal(found["done"], found["state"] == 2)
    later = respond("state_machine", 10.0, {"go": go, "stop": stop}, initial="done", **machine)
    np.testing.assert_array_equal(later["state"], np.full(9, 2.0))


def test_a_transition_to_the_same_state_restarts_its_time() -> None:
    """A watchdog: the alarm comes 0.5 s after the last kick."""
    transitions = [["wait", "wait", "kick"], ["wait", "alarm", 0.5]]
    kick = np.array([0, 0, 0, 1, 0, 0, 0, 0, 0, 0.0])
    found = respond("state_machine", 10.0, {"kick": kick}, states=["wait", "alarm"], transitions=transitions)
    np.testing.assert_array_equal(found["state"], [0, 0, 0, 0, 0, 0, 0, 0, 1, 1])
    np.testing.assert_allclose(found["time"], [0, 0.1, 0.2, 0, 0.1, 0.2, 0.3, 0.4, 0, 0.1], atol=1e-15)


def test_the_first_transition_that_holds_is_taken() -> None:
    both = {"a": np.ones(3), "b": np.ones(3)}
    for order, wanted in ((("a", "b"), 1.0), (("b", "a"), 2.0)):
        transitions = [["zero", {"a": "one", "b": "two"}[port], port] for port in order]
        found = respond("state_machine", 10.0, both, states=["zero", "one", "two"], transitions=transitions)["state"]
        np.testing.assert_array_equal(found, np.full(3, wanted))


A, B = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])


@pytest.mark.parametrize("operation, wanted", [
    ("and", [0, 0, 0, 1]), ("or", [0, 1, 1, 1]), ("xor", [0, 1, 1, 0]), ("nand", [1, 1, 1, 0]), ("nor", [1, 0, 0, 0]),
])  # fmt: skip
def test_logic(operation: str, wanted: list[float]) -> None:
    np.testing.assert_array_equal(respond("logic", 10.0, {"a": A, "b": B}, operation=operation)["out"], wanted)


def test_not_and_comparisons() -> None:
    np.testing.assert_array_equal(respond("logic", 10.0, {"a": A}, operation="not")["out"], 1.0 - A)
    for sign, wanted in (("<", A < B), ("<=", A <= B), (">", A > B), (">=", A >= B), ("==", A == B), ("!=", A != B)):
        np.testing.assert_array_equal(respond("compare", 10.0, {"a": A, "b": B}, sign=sign)["out"], wanted)


def test_choices() -> None:
    inputs = {"on": A, "a": U[:4], "b": -U[:4]}
    np.testing.assert_array_equal(respond("switch", 10.0, inputs)["out"], np.where(A > 0.5, U[:4], -U[:4]))
    index = np.array([-3.0, 0.4, 0.6, 1.0, 2.0, 9.0])
    inputs = {"index": index, "a": np.full(6, 10.0), "b": np.full(6, 20.0), "c": np.full(6, 30.0)}
    np.testing.assert_array_equal(respond("select", 10.0, inputs, count=3)["out"], [10, 10, 20, 20, 30, 30])


def test_arithmetic() -> None:
    a, b = np.array([1.0, -2.0, 3.0, 0.5]), np.array([4.0, 0.0, -2.0, 0.25])
    quotient = np.array([0.25, 0.0, -1.5, 2.0])
    np.testing.assert_allclose(respond("division", 10.0, {"a": a, "b": b})["out"], quotient, atol=1e-15)
    np.testing.assert_allclose(respond("product", 10.0, {"a": a, "b": b, "c": a}, signs="*/*")["out"], quotient * a)
    np.testing.assert_array_equal(respond("sum", 10.0, {"a": a, "b": b, "c": a}, signs="-+-")["out"], b - 2.0 * a)
    np.testing.assert_array_equal(respond("minmax", 10.0, {"a": a, "b": b}, which="min")["out"], np.minimum(a, b))
    np.testing.assert_allclose(respond("atan2", 10.0, {"y": a, "x": b})["out"], np.arctan2(a, b), atol=1e-15)
    for name in ("sin", "cos", "tan", "atan"):
        wanted = getattr(np, name.replace("atan", "arctan"))(a)
        np.testing.assert_allclose(respond("trigonometry", 10.0, {"in": a}, function=name)["out"], wanted, atol=1e-14)
    for name, wanted in (("asin", np.arcsin), ("acos", np.arccos)):
        found = respond("trigonometry", 10.0, {"in": a}, function=name)["out"]
        np.testing.assert_allclose(found, wanted(np.clip(a, -1.0, 1.0)), atol=1e-15)


def test_vectors() -> None:
    a, b = np.array([3.0, -1.0]), np.array([4.0, 2.0])
    np.testing.assert_array_equal(respond("mux", 10.0, {"a": a, "b": b})["out"], np.stack([a, b], axis=1))
    np.testing.assert_allclose(respond("dot", 10.0, {"a": a, "b": b})["out"], a * b)
    np.testing.assert_allclose(respond("norm", 10.0, {"in": a})["out"], np.abs(a))


@pytest.mark.parametrize("text, wanted", [
    ("a ** 3 - 2 * b", lambda a, b: a**3 - 2 * b),
    ("a % b", lambda a, b: np.mod(a, b)),
    ("a if a > b else -b", lambda a, b: np.where(a > b, a, -b)),
    ("0 < a <= 2 and not b > 1", lambda a, b: ((a > 0) & (a <= 2) & ~(b > 1)).astype(float)),
    ("min(a, b, 0.5) + max(a, b)", lambda a, b: np.minimum(np.minimum(a, b), 0.5) + np.maximum(a, b)),
    ("sqrt(abs(a)) + floor(b) + round(a)", lambda a, b: np.sqrt(np.abs(a)) + np.floor(b) + np.rint(a)),
    ("exp(a) * cos(pi * b) / (2 + b)", lambda a, b: np.exp(a) * np.cos(np.pi * b) / (2 + b)),
    ("b ** 0.5 + pow(b, a) + log(b)", lambda a, b: b**0.5 + b**a + np.log(b)),
    ("a / (b - b)", lambda a, b: np.zeros_like(a)),
])  # fmt: skip
def test_expressions(text: str, wanted: object) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.uniform(-3.0, 3.0, 50), rng.uniform(0.1, 3.0, 50)
    found = respond("expression", 10.0, {"a": a, "b": b}, text=text)["out"]
    np.testing.assert_allclose(found, wanted(a, b), rtol=1e-13, atol=1e-13)  # type: ignore[operator]
