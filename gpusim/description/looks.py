"""Appearance of visuals: images on surfaces, transparency and finish. Appearance has no effect on the motion."""

from __future__ import annotations

import hashlib
import weakref
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import as_array
from gpusim.typing import Array

LARGEST = 2048
"""Maximum width and height of a texture (pixels). gpusim reduces larger images by averaging pixels."""
SURFACE, PROJECTED = "surface", "projected"
_PIXELS: weakref.WeakValueDictionary[str, Array] = weakref.WeakValueDictionary()


@dataclass(frozen=True, eq=False)
class Texture:
    """Image on a surface. Equal images share one array in memory.

    A texture with six images is a cube map around the visual, as in MuJoCo. The viewer projects the cube map onto the
    visual, from the origin of the visual's frame.

    Args:
        pixels: sRGB colors (uint8). An image is (height, width, 3 or 4), with the top row first. A cube map is (6, n,
            n, 3), with the faces +x, -x, +y, -y, +z, -z, oriented as in OpenGL. Floats from 0 to 1 and gray images
            (height, width) are also valid. Pixels whose fourth channel (opacity) is below 128 are invisible.
        repeat: number of repetitions of the image in each direction, per unit of texture coordinates. For a projected
            image, ``repeat`` is the number of repetitions per m.
        mapping: how the image covers the visual. "surface" uses the texture coordinates of the mesh or shape. A box
            shows the whole image on each face. A cylinder shows the whole image on its lateral surface. "projected"
            projects the image along z, with the image center on the z axis. Planes and height fields are always
            projected. With "surface", the viewer scales a cube map to the bounding box of the shape.

    Attributes:
        key: hash of the pixels.

    Raises:
        ModelError: a value is invalid.
    """

    pixels: Array = field(repr=False)
    repeat: tuple[float, float] = (1.0, 1.0)
    mapping: str = SURFACE
    key: str = field(init=False, default="")

    def __post_init__(self) -> None:
        repeat = validate.per_axis("texture", "repeat", self.repeat, 2)
        if np.any(repeat == 0.0):
            raise validate.fail("texture", f"repeat = {self.repeat!r} has a zero", "give e.g. repeat=(1, 1)")
        validate.choice("texture", "mapping", self.mapping, (SURFACE, PROJECTED))
        key, pixels = _shared(_checked(self.pixels))
        object.__setattr__(self, "repeat", (float(repeat[0]), float(repeat[1])))
        object.__setattr__(self, "pixels", pixels)
        object.__setattr__(self, "key", key)

    @property
    def is_cube(self) -> bool:
        """Return whether the texture is a cube map of six images."""
        return self.pixels.ndim == 4

    def mean(self) -> tuple[float, float, float]:
        """Return the mean color (sRGB, 0 to 1)."""
        rgb = self.pixels.reshape(-1, self.pixels.shape[-1])[:, :3].mean(axis=0)
        r, g, b = (round(float(c) / 255.0, 4) for c in rgb)
        return r, g, b

    def _identity(self) -> tuple[Any, ...]:
        return self.key, self.repeat, self.mapping

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Texture) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


@dataclass(frozen=True)
class Look:
    """Surface appearance of a visual.

    If an attribute is None, the viewer uses the value from the mesh file, or its default value.

    Attributes:
        alpha: opacity, 0 (invisible) to 1.
        roughness: 0 (mirror) to 1 (chalk).
        metallic: 0 (paint, plastic, rubber) to 1 (bare metal).
        texture: image on the surface.
    """

    alpha: float | None = None
    roughness: float | None = None
    metallic: float | None = None
    texture: Texture | None = None

    def over(self, other: Look) -> Look:
        """Return a copy of this look. Attributes of ``other`` replace attributes that are None."""
        values = {name: value for name, value in vars(self).items() if value is not None}
        return replace(other, **values)


def checked_look(element: str, alpha: Any, roughness: Any, metallic: Any, texture: Texture | None) -> Look:
    """Check the numbers of a look, and return the look.

    Raises:
        ModelError: a number is not from 0 to 1.
    """
    numbers = {"alpha": alpha, "roughness": roughness, "metallic": metallic}
    values = {name: _fraction(element, name, value) for name, value in numbers.items() if value is not None}
    return Look(**values, texture=texture)


def _fraction(element: str, name: str, value: Any) -> float:
    result = validate.number(element, name, value)
    if not 0.0 <= result <= 1.0:
        raise validate.fail(element, f"{name} = {result:g} is not within 0 to 1", f"give {name} from 0 to 1")
    return result


def _checked(pixels: Any) -> Array:
    """Check pixels, and return them as uint8 with 3 or 4 channels."""
    array = as_array(pixels)
    if array.ndim == 2:
        array = np.repeat(array[:, :, None], 3, axis=2)
    channels = array.shape[-1] if array.ndim else 0
    cube = array.ndim == 4 and array.shape[0] == 6 and array.shape[1] == array.shape[2] and channels == 3
    if not array.size or not (cube or (array.ndim == 3 and channels in (3, 4))):
        hint = "give (height, width, 3 or 4), or the faces of a cube (6, n, n, 3)"
        raise validate.fail("texture", f"pixels have shape {array.shape}", hint)
    if np.issubdtype(array.dtype, np.floating) and np.all((array >= 0.0) & (array <= 1.0)):
        array = np.rint(255.0 * array).astype(np.uint8)
    if array.dtype != np.uint8:
        rule = f"pixels of type {array.dtype} are not colors"
        raise validate.fail("texture", rule, "give uint8 from 0 to 255, or floats from 0 to 1")
    if channels == 4 and np.all(array[..., 3] >= 128):
        array = array[..., :3]
    return reduced(array)


def reduced(pixels: Array) -> Array:
    """Reduce an image to at most LARGEST pixels in width and height.

    Each new pixel is the mean of a block of pixels.
    """
    height, width, channels = pixels.shape[-3:]
    factor = -(-max(height, width) // LARGEST)
    if factor == 1:
        return pixels
    rows, columns = max(1, height // factor), max(1, width // factor)
    tall, wide = height // rows, width // columns
    cut = pixels[..., : rows * tall, : columns * wide, :]
    squares = cut.reshape(*pixels.shape[:-3], rows, tall, columns, wide, channels)
    means: Array = np.rint(squares.mean(axis=(-4, -2), dtype=np.float32)).astype(np.uint8)
    return means


def _shared(pixels: Array) -> tuple[str, Array]:
    """Return the hash of the pixels, and the read-only array of pixels. Equal images share the array."""
    data = np.ascontiguousarray(pixels)
    digest = hashlib.blake2b(repr(data.shape).encode(), digest_size=12)
    digest.update(data.data)
    key = digest.hexdigest()
    shared = _PIXELS.get(key)
    if shared is None:
        shared = data.copy()  # the caller may change the given array
        shared.flags.writeable = False
        _PIXELS[key] = shared
    return key, shared
