"""Shape and contact tables for the kernels: the data of compiler/contact_topology.py as flat arrays."""

from __future__ import annotations

import numpy as np

from gpusim.compiler.contact_topology import ContactTopology
from gpusim.contact.law import FRICTION
from gpusim.contact.patch import patch_table
from gpusim.typing import Array

CONTENSOU = FRICTION["contensou"].number
_INDICES = (
    "shape_kind", "shape_body", "shape_group", "shape_mask", "shape_law", "shape_rule", "shape_rolls",
    "shape_point_start", "shape_face_start", "shape_vertex_start", "face_first", "face_vertex", "candidate_start",
    "candidate", "exclude_start", "exclude", "include_start", "include", "include_material", "seam_start", "seam",
    "shape_manifolds", "body_articulated",
)  # fmt: skip
_NUMBERS = (
    "shape_size", "shape_center", "shape_frame", "shape_radius", "shape_modulus", "shape_curvature", "seam_reach",
    "shape_points", "face_normal", "contact_laws", "pair_materials", "grid_cell", "patch_friction",
)  # fmt: skip
CONTACT_TABLES = {**dict.fromkeys(_INDICES, "int"), **dict.fromkeys(_NUMBERS, "double")}
"""C types of the tables by name."""
CONTACT_SIZES = (
    "shapes", "surfaces", "touchable", "shape_level", "pairs", "seam_pairs", "split_pairs", "shape_slots", "buckets",
    "bucket_slots", "grid_shapes", "scan_parts",
    "large_parts", "color_slots", "body_slots", "pair_sides", "contact_bodies", "rolling_shapes",
    "lanes", "record_slots", "anchor_slots", "kept_pairs", "incident_slots", "incidents",
    "color_parts", "direction_rows", "contact_sweeps", "max_colors", "articulated_slots", "path_slots", "path_rows",
    "path_wrenches", "condensed_slots", "condensed_total", "condensed_numbers", "condensed_equations",
    "island_nodes", "island_paths", "island_manifolds", "elimination_trees", "tree_slots",
)  # fmt: skip


def add_lanes(sizes: dict[str, int], lanes: int) -> None:
    """Set the sizes of the manifold buffers. The buffers interleave the data of ``lanes`` manifolds."""
    lists = sizes["color_slots"] - 1
    pairs = sizes["pairs"]
    slots = -(-(pairs + lists * (lanes - 1)) // lanes) * lanes if pairs else 0
    sizes |= {"lanes": lanes, "record_slots": slots, "anchor_slots": slots}


def contact_tables(c: ContactTopology) -> dict[str, Array]:
    """Return a dict of the tables that CONTACT_TABLES lists."""
    candidates = c.candidates if c.candidates is not None else [[] for _ in range(c.num_shapes)]
    tables: dict[str, Array] = {
        "shape_kind": c.kind,
        "shape_body": c.body,
        "shape_group": as_bits(c.group),
        "shape_mask": as_bits(c.mask),
        "shape_law": c.law,
        "shape_rule": c.rule,
        "shape_rolls": c.rolls,
        "shape_manifolds": c.manifolds,
        "shape_point_start": c.point_start,
        "shape_face_start": c.face_start,
        "shape_vertex_start": c.vertex_start,
        "face_first": c.face_first,
        "face_vertex": c.face_vertex,
        "include_material": np.array([m for row in c.include_material for m in row]),
        "body_articulated": c.articulated,
        "shape_size": c.size,
        "shape_center": c.center,
        "shape_frame": c.rotation,
        "shape_radius": c.radius,
        "shape_modulus": c.modulus,
        "shape_curvature": c.curvature,
        "seam_reach": c.seam_reach,
        "shape_points": c.points,
        "face_normal": c.face_normal,
        "contact_laws": c.laws,
        "pair_materials": c.materials,
        "grid_cell": np.array([c.cell]),
        "patch_friction": patch_table() if np.any(c.laws[:, 2] == CONTENSOU) else np.zeros(0),
    }
    for name, lists in (("candidate", candidates), ("exclude", c.excluded), ("include", c.included), ("seam", c.seams)):
        tables[f"{name}_start"] = np.concatenate([[0], np.cumsum([len(x) for x in lists])])
        tables[name] = np.array([v for x in lists for v in x])
    return tables


def as_bits(values: Array) -> Array:
    """Convert 32-bit masks to int32 numbers with the same bits."""
    return values.astype(np.uint32).view(np.int32)
