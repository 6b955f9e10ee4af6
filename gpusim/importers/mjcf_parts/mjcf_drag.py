"""Drag of the MJCF importer: MuJoCo's inertia-box model with density, viscosity and wind."""

from __future__ import annotations

import numpy as np

from gpusim.importers.mjcf_parts.mjcf_context import Context, frame, vector


def add_drag(context: Context) -> None:
    """Add drag to all dynamic bodies if the model has a fluid."""
    m, builder = context.m, context.builder
    density, viscosity = float(m.opt.density), float(m.opt.viscosity)
    if context.is_passive_disabled() or not (density or viscosity):
        return
    fluid = context.field("geom_fluid", np.zeros((m.ngeom, 1)))
    ellipsoids = {int(m.geom_bodyid[g]) for g in range(m.ngeom) if np.ravel(fluid[g])[0] > 0.0}
    for body, members in context.members.items():
        if builder.bodies[body].kinematic:
            continue
        heavy = [b for b in members if m.body_mass[b] > 0.0]
        label = context.label("actuator", f"{context.labels[members[0]]}_drag")
        index = builder.add_drag(body, density, viscosity, wind=vector(m.opt.wind), label=label)
        if len(heavy) == 1:  # use MuJoCo's axes, since equal moments do not define axes
            part, moments = heavy[0], np.array(m.body_inertia[heavy[0]])
            rotation = (context.placements[part][1] * frame(m.body_ipos[part], m.body_iquat[part])).rotation
            size = np.sqrt(np.maximum(6.0 / m.body_mass[part] * (moments.sum() - 2.0 * moments), 0.0))
            box = {f"rotation_{c}": float(x) for c, x in zip("xyzw", rotation, strict=True)}
            box |= {f"size_{c}": float(x) for c, x in zip("xyz", size, strict=True)}
            builder.actuators[index].params.update(box)
        if ellipsoids.intersection(heavy):
            context.report_loss(
                "motion", "BODY", members[0], "drag of ellipsoids", "drag of its inertia's box", "leave out fluidshape"
            )
        elif len(heavy) > 1:
            effect, fix = "drag of one box with their inertia", "load with merge_fixed=False"
            context.report_loss("motion", "BODY", members[0], "drag of several parts", effect, fix)
