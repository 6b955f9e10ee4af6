"""Builder methods for cameras and lights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.viewing import DIRECTIONAL, HEADLIGHT, LIGHT_KINDS, CameraSpec, LightSpec
from gpusim.transform import Transform
from gpusim.typing import Array, Vector


@builder_method
def add_camera(
    self: ModelBuilder,
    body: int = -1,
    xform: Transform | None = None,
    fov_y: float = math.pi / 4.0,
    label: str | None = None,
    target: Vector | None = None,
) -> int:
    """Add a camera that moves with a body.

    ``gpusim render --camera LABEL`` and ``Offscreen.look(label)`` use the camera. Cameras do not affect the simulation.

    Args:
        body: body index, -1 for the world.
        xform: camera frame in the body frame, as in MuJoCo, OpenGL and USD. In the image, x points right and y up. The
            camera looks along -z.
        fov_y: vertical field of view (rad), above 0 and below pi.
        label: unique name, default ``camera<index>``.
        target: point in the body frame (m) that the camera looks at. The body's z axis points up in the image.
            ``target`` replaces the rotation of ``xform``.

    Returns:
        The camera's index.

    Raises:
        ModelError: a value is invalid. The message names the camera, the rule and the fix.
    """
    name = self._new_label("camera", label, len(self.cameras))
    element = f"camera '{name}'"
    body = self.check_body(element, "body", body)
    validate.transform(element, "xform", xform)
    angle = validate.positive(element, "fov_y", fov_y)
    if angle >= math.pi:
        raise validate.fail(element, f"fov_y = {angle:g} rad is not below pi", "give radians, such as 0.8")
    frame = xform or Transform()
    if target is not None:
        frame = _look_at_frame(element, frame.position, validate.numbers(element, "target", target, 3))
    return self._adopt("camera", CameraSpec(name, body, frame, angle))


@builder_method
def add_light(
    self: ModelBuilder,
    kind: str = DIRECTIONAL,
    body: int = -1,
    position: Vector = (0.0, 0.0, 0.0),
    direction: Vector = (0.0, 0.0, -1.0),
    color: Any = (1.0, 1.0, 1.0),
    intensity: float = 1.0,
    attenuation: Vector = (1.0, 0.0, 0.0),
    cutoff: float = math.pi / 4.0,
    exponent: float = 0.0,
    shadow: bool = True,
    label: str | None = None,
) -> int:
    """Add a light that moves with a body.

    The lights of a model replace the viewer's key light, but not the sky light. Lights do not affect the simulation.

    Args:
        kind: "directional" (like the sun), "point", "spot" or "headlight". A headlight shines from the camera without
            shadows, and ignores ``body``, ``position`` and ``direction``.
        body: body index, -1 for the world.
        position: position of a point or spot light in the body frame (m).
        direction: direction of a directional or spot light in the body frame, a nonzero vector.
        color: sRGB (red, green, blue) from 0 to 1, or "#rrggbb".
        intensity: brightness relative to the viewer's key light, at least 0.
        attenuation: coefficients (a, b, c) of a point or spot light. At the distance d (m), the intensity is multiplied
            by 1 / (a + b d + c d^2).
        cutoff: half angle of a spot light's cone (rad), at most pi / 2.
        exponent: exponent of a spot light. At the angle x to the axis, the intensity is multiplied by cos(x)^exponent.
        shadow: True for a light that casts shadows. The viewer draws the shadows of only one light (the first with
            ``shadow=True``), with parallel rays.
        label: unique name, default ``light<index>``.

    Returns:
        The light's index.

    Raises:
        ModelError: a value is invalid. The message names the light, the rule and the fix.
    """
    name = self._new_label("light", label, len(self.lights))
    element = f"light '{name}'"
    validate.choice(element, "kind", kind, LIGHT_KINDS)
    validate.flag(element, "shadow", shadow)
    point = validate.numbers(element, "position", position, 3)
    angle = validate.positive(element, "cutoff", cutoff)
    if angle > 0.5 * math.pi:
        raise validate.fail(element, f"cutoff = {angle:g} rad is above pi / 2", "give radians, such as 0.8")
    spec = LightSpec(
        label=name,
        kind=kind,
        body=self.check_body(element, "body", body),
        xform=_look_at_frame(element, point, point + validate.direction(element, "direction", direction)),
        color=validate.color(element, color),
        intensity=validate.not_negative(element, "intensity", intensity),
        attenuation=_attenuation(element, attenuation),
        cutoff=angle,
        exponent=validate.not_negative(element, "exponent", exponent),
        shadow=bool(shadow) and kind != HEADLIGHT,
    )
    return self._adopt("light", spec)


def _attenuation(element: str, value: Any) -> tuple[float, float, float]:
    a, b, c = validate.numbers(element, "attenuation", value, 3)
    if min(a, b, c) < 0.0 or a + b + c == 0.0:
        rule = f"attenuation ({a:g}, {b:g}, {c:g}) needs numbers of at least 0, not all of them 0"
        raise validate.fail(element, rule, "give (1, 0, 0) for none")
    return float(a), float(b), float(c)


def _look_at_frame(element: str, position: Array, target: Array) -> Transform:
    """Return the camera frame at ``position`` that looks at ``target``. The body's z axis points up in the image."""
    back = position - target
    length = float(np.linalg.norm(back))
    if length < 1e-9:
        raise validate.fail(element, f"its position and target are both {tuple(position.tolist())}", "move one of them")
    back = back / length
    right = np.cross((0.0, 0.0, 1.0), back)
    if float(np.linalg.norm(right)) < 1e-6:
        right = np.array([1.0, 0.0, 0.0])
        right = right - (right @ back) * back
    right /= np.linalg.norm(right)
    matrix = np.eye(4)
    matrix[:3] = np.stack([right, np.cross(back, right), back, position], axis=1)
    return Transform.from_matrix(matrix)
