"""Builder method for sensors that measure distances along rays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.rays import FORWARD, Rays
from gpusim.description.specs import RAY_SENSOR, RaySpec, SensorSpec
from gpusim.errors import ModelError


@builder_method
def add_ray_sensor(
    self: ModelBuilder,
    site: int,
    rays: Any = FORWARD,
    max_range: float = 100.0,
    groups: Sequence[str] | None = None,
    own_body: bool = False,
    label: str | None = None,
) -> int:
    """Add a distance sensor with rays from a site: a rangefinder, a scan line, a lidar or a height grid.

    Rays hit the exact surface of collision shapes, but not visuals. Each ray reports the first surface that it hits. A
    ray that begins inside a shape reports the point where it leaves the shape.

    * ``sensor.<label>`` (n,), m: distance along each ray, or ``max_range`` without a hit.
    * ``sensor.<label>.shape`` (n,): index of the shape that the ray hits, or -1 without a hit.
    * ``sensor.<label>.point`` (n, 3), m: hit point in the world frame, or the end point of the ray without a hit.
    * ``sensor.<label>.normal`` (n, 3): outward unit normal at the hit point in the world frame, or zeros without a hit.

    Diagrams can read the signals. The sensor does not change the motion.

    Args:
        site: site index, from ``add_site``.
        rays: directions from the site, in the site frame, (3,) or (n, 3), or a :class:`gpusim.Rays`, such as
            ``Rays.fan(angle, count)``. Default: one ray along x.
        max_range: maximum distance, above zero (m).
        groups: names of the shape groups that the rays can hit, see the argument ``group`` of shapes. Default: all
            shapes.
        own_body: True if the rays can hit the shapes of the site's body. Rays from a site on the world always hit the
            shapes of the world.
        label: unique name, default ``sensor<index>``.

    Returns:
        The index of the sensor.

    Raises:
        ModelError: the site is unknown, there are no directions, the range is not above zero, or the label exists
            already. :meth:`finalize` raises this error for a group without shapes.
    """
    element = self.element("sensor", label)
    site = self.check_index(element, "site", site, "site")
    range_limit = validate.positive(element, "max_range", max_range)
    validate.flag(element, "own_body", own_body)
    try:
        pattern = rays if isinstance(rays, Rays) else Rays(rays)
    except ModelError as error:
        raise ModelError(f"{element}: {error}") from None
    spec = RaySpec(pattern, range_limit, _names(element, groups), bool(own_body))
    name = self._new_label("sensor", label, len(self.sensors))
    return self._adopt("sensor", SensorSpec(name, RAY_SENSOR, -1, site, spec))


def _names(element: str, groups: Any) -> tuple[str, ...] | None:
    """Check a list of group names, and return the names as a tuple."""
    if groups is None:
        return None
    listed = isinstance(groups, Sequence) and not isinstance(groups, str) and len(groups) > 0
    if not listed or not all(isinstance(name, str) and name for name in groups):
        raise validate.fail(element, f"groups = {groups!r} is not a list of names", 'give a list such as ["terrain"]')
    return tuple(groups)
