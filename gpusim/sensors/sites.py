"""Builder method for sites: named frames on bodies."""

from __future__ import annotations

from gpusim import validate
from gpusim.builder.anchors import Anchor, end_frame
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.specs import SiteSpec
from gpusim.transform import Transform


@builder_method
def add_site(
    self: ModelBuilder,
    body: int,
    xform: Transform | None = None,
    label: str | None = None,
    at: Anchor | None = None,
) -> int:
    """Add a site, a named frame on a body, for a sensor, a gripper or a sole.

    Sites do not change the motion. The signals ``position``, ``orientation``, ``linear_velocity`` and
    ``angular_velocity`` of ``site.<label>`` report the motion of the site. :class:`gpusim.robotics.Tree` accepts the
    label as the name of a frame.

    Args:
        body: body index, -1 for the world.
        xform: site frame in the body frame. Default: the body frame.
        label: unique name, default ``site<index>``.
        at: alternative to ``xform``: the site frame in the world frame, at the current pose of the body in the builder.
            If ``at`` is a point (m), the site frame has the axes of the world.

    Returns:
        The index of the site.

    Raises:
        ModelError: the body is unknown, the label exists already, or both ``xform`` and ``at`` are given.
    """
    name = self._new_label("site", label, len(self.sites))
    element = f"site '{name}'"
    body = self.check_body(element, "body", body)
    validate.transform(element, "xform", xform)
    return self._adopt("site", SiteSpec(name, body, end_frame(self, element, "xform at", body, xform, at)))
