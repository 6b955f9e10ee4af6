"""Builder method for sites: named frames on bodies."""

from __future__ import annotations

from gpusim.model import validate
from gpusim.model.anchors import Anchor, end_frame
from gpusim.model.builder import ModelBuilder, builder_method
from gpusim.model.specs import SiteSpec
from gpusim.transform import Transform


@builder_method
def add_site(
    self: ModelBuilder,
    body: int,
    xform: Transform | None = None,
    label: str | None = None,
    at: Anchor | None = None,
) -> int:
    """Add a site, a named frame on a body: where a sensor sits, a hand grips or a sole stands.

    Sites touch nothing and weigh nothing: a simulation with them has the same bits as one without. Signals
    ``site.<label>.position``, ``.orientation``, ``.linear_velocity`` and ``.angular_velocity`` tell where it is;
    :class:`gpusim.robotics.Tree` takes its label for a frame.

    Args:
        body: body index, -1 for the world.
        xform: site frame in the body frame; left out: the body frame itself.
        label: unique name; ``site<index>`` if left out.
        at: in place of ``xform``: the site in the world, a point (m, with the world's axes) or a Transform, by the
            pose that the body has now.

    Returns:
        The site's index.

    Raises:
        ModelError: an unknown body, a label that is taken, or both ``xform`` and ``at``.
    """
    name = self._new_label("site", label, len(self.sites))
    element = f"site '{name}'"
    body = self.check_body(element, "body", body)
    validate.transform(element, "xform", xform)
    self.sites.append(SiteSpec(name, body, end_frame(self, element, "xform at", body, xform, at)))
    self._labels["site"][name] = len(self.sites) - 1
    return len(self.sites) - 1
