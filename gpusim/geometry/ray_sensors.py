"""Builder method for sensors that measure distances along rays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpusim.errors import ModelError
from gpusim.model import validate
from gpusim.model.builder import ModelBuilder, builder_method
from gpusim.model.rays import FORWARD, Rays
from gpusim.model.specs import RAY_SENSOR, RaySpec, SensorSpec


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
    """Add a sensor of distances along rays from a site: a rangefinder, a line, a lidar, a grid of heights.

    Rays see the shapes that collide, each exactly, and no visuals. Of each ray signals tell the first crossing of a
    surface; of a ray that begins within a shape that is where it comes out.

    * ``sensor.<label>`` (n,) m: distance along each ray; ``max_range`` where nothing is hit.
    * ``sensor.<label>.shape`` (n,): index of the shape that is hit, -1 for none.
    * ``sensor.<label>.point`` (n, 3) m: where, world frame; the end of the ray where nothing is hit.
    * ``sensor.<label>.normal`` (n, 3): outward unit normal there, world frame; zeros where nothing is hit.

    They need no trial of the next step, so diagrams read them; a model has the same bits of its state with and without.

    Args:
        site: site index, from ``add_site``.
        rays: in the site's frame: a :class:`gpusim.Rays`, such as ``Rays.fan(angle, count)``, or directions from the
            site's origin, (3,) or (n, 3); one ray along x if left out.
        max_range: how far they see, m, above zero.
        groups: names of the groups of shapes that it sees (``group=`` of shapes); all shapes if left out.
        own_body: whether it sees the shapes of the body that the site is on. On the world it sees them in any case.
        label: unique name; ``sensor<index>`` if left out.

    Returns:
        The sensor's index.

    Raises:
        ModelError: an unknown site, no directions, a range that is not above zero, a label that is taken; at finalize:
            a group that no shape is in.
    """
    element = self.element("sensor", label)
    if isinstance(site, bool) or not isinstance(site, int | np.integer) or not 0 <= site < len(self.sites):
        rule = f"site = {site!r} is unknown: there are {len(self.sites)} sites"
        raise validate.fail(element, rule, "give what add_site returned")
    reach = validate.positive(element, "max_range", max_range)
    if not isinstance(own_body, bool | np.bool_):
        raise validate.fail(element, f"own_body = {own_body!r} is neither True nor False", "give one of them")
    try:
        pattern = rays if isinstance(rays, Rays) else Rays(rays)
    except ModelError as error:
        raise ModelError(f"{element}: {error}") from None
    spec = RaySpec(pattern, reach, _names(element, groups), bool(own_body))
    name = self._new_label("sensor", label, len(self.sensors))
    self.sensors.append(SensorSpec(name, RAY_SENSOR, -1, int(site), spec))
    self._labels["sensor"][name] = len(self.sensors) - 1
    return len(self.sensors) - 1


def _names(element: str, groups: Any) -> tuple[str, ...] | None:
    """Names of groups."""
    if groups is None:
        return None
    listed = isinstance(groups, Sequence) and not isinstance(groups, str) and len(groups) > 0
    if not listed or not all(isinstance(name, str) and name for name in groups):
        raise validate.fail(element, f"groups = {groups!r} is no list of names", 'give one, such as ["terrain"]')
    return tuple(groups)
