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

    Sites have no contacts and no mass, so the motion with and without sites is bit-identical. The signals
    ``site.<label>.position``, ``.orientation``, ``.linear_velocity`` and ``.angular_velocity`` report the motion of the
    site. :class:`gpusim.robotics.Tree` accepts the site's label as the name of a frame.

    Args:
        body: body index, -1 for the world.
        xform: site frame in the body frame. Default: the body frame.
        label: unique name, default ``site<index>``.
        at: alternative to ``xform``: the site in the world, for the body's current pose. A point (m) gives a site with
            the world's axes. A Transform gives the frame itself.

    Returns:
        The site's index.

    Raises:
        ModelError: an unknown body, a duplicate label, or both ``xform`` and ``at``.
    """
    name = self._new_label("site", label, len(self.sites))
    element = f"site '{name}'"
    body = self.check_body(element, "body", body)
    validate.transform(element, "xform", xform)
    self.sites.append(SiteSpec(name, body, end_frame(self, element, "xform at", body, xform, at)))
    self._labels["site"][name] = len(self.sites) - 1
    return len(self.sites) - 1
