"""Table of sites, for signals."""

from __future__ import annotations

import numpy as np

from gpusim.description.elements import Elements
from gpusim.description.specs import WORLD
from gpusim.typing import Array

COLUMNS = {"body": "int", "arm": "double", "frame": "double"}
"""Columns and their C types. ``body`` is the index of the body, and the world is the last body. ``arm`` is the vector
(m) from the body's center of mass to the site, along the body's axes. ``frame`` is the orientation of the site in the
body frame (quaternion xyzw)."""


def site_table(model: Elements) -> dict[str, Array]:
    """Return a dict of the arrays (sites, ...) that ``COLUMNS`` lists.

    All bodies must already have a center of mass.
    """
    world, sites = len(model.bodies), model.sites
    arms = [s.xform.position - (0.0 if s.body == WORLD else model.bodies[s.body].com) for s in sites]
    return {
        "body": np.array([world if s.body == WORLD else s.body for s in sites], np.int64),
        "arm": np.array(arms, np.float64).reshape(-1, 3),
        "frame": np.array([s.xform.rotation for s in sites], np.float64).reshape(-1, 4),
    }
