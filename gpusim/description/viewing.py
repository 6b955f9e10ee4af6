"""Cameras and lights, which have no effect on the motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpusim.description.specs import Named
from gpusim.transform import Transform

DIRECTIONAL, POINT, SPOT, HEADLIGHT = "directional", "point", "spot", "headlight"
LIGHT_KINDS = (DIRECTIONAL, POINT, SPOT, HEADLIGHT)


@dataclass
class CameraSpec(Named):
    """A named camera on a body (-1: the world).

    Attributes:
        label: unique name.
        body: index, -1 for the world.
        xform: camera frame in the body frame. In the image, x points to the right and y points up. The camera looks
            along -z.
        fov_y: vertical field of view (rad).
    """

    word: ClassVar[str] = "camera"
    label: str
    body: int
    xform: Transform
    fov_y: float


@dataclass
class LightSpec(Named):
    """A light on a body (-1: the world).

    Attributes:
        label: unique name.
        kind: one of "directional", "point", "spot" and "headlight". A headlight is at the camera that takes the image.
        body: index, -1 for the world.
        xform: frame in the body frame. The light shines along -z. The position of a directional light has no effect.
        color: sRGB, 0 to 1.
        intensity: brightness relative to the viewer's default light.
        attenuation: factors (a, b, c). At a distance of d m, the intensity is multiplied by 1 / (a + b d + c d^2).
        cutoff: half of the opening angle (rad) of a spot's cone.
        exponent: the intensity of a spot is proportional to cos(a)^exponent, where a is the angle to the spot's axis.
        shadow: whether the light casts shadows.
    """

    word: ClassVar[str] = "light"
    label: str
    kind: str
    body: int
    xform: Transform
    color: tuple[float, float, float]
    intensity: float
    attenuation: tuple[float, float, float]
    cutoff: float
    exponent: float
    shadow: bool
