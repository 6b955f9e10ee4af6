"""Declarations of the contact arrays, for the table of all arrays in model/fields.py.

The dimension "shapes" is the number of shapes. The dimension "pairs" is the maximum number of shape pairs with
overlapping bounding boxes. The dimension 4 is the maximum number of contact points in a manifold. Forces and impulses
act on shape B. All vectors are in the world frame. Shape A has the lower index, and normals point from A to B.
"""

from __future__ import annotations

from gpusim.description.contact_record import ANCHOR, RECORD, SOLVED_SIZE
from gpusim.description.contact_record import POINTS as POINTS
from gpusim.description.field import Field

PARTNERS = 24
"""Maximum number of entries in the neighbor list of a shape."""
WIDER = 0.04
"""Margin around bounding boxes in the grid search, as a fraction of the cell size."""

# Data of pairs that the next step matches with its own pairs.
CARRIED_FIELDS: tuple[Field, ...] = (
    Field("pair_shapes", ("worlds", "pairs", 2), "int", "-", "shapes A < B of each pair, ascending"),
    Field("pair_points", ("worlds", "pairs"), "int", "-", "number of points of the manifold, 0 to 4"),
    Field("contact_feature", ("worlds", "pairs", 4), "int", "-", "feature number of each point"),
    Field("pair_normal", ("worlds", "pairs", 3), "pose", "-", "unit normal from A to B"),
    Field("pair_guess", ("worlds", "pairs", 4), "pose", "-", "start of the search for the nearest points"),
    Field("pair_force", ("worlds", "pairs", 3), "stored", "N s", "friction impulse of a patch"),
    Field("pair_torque", ("worlds", "pairs", 3), "stored", "N m s", "impulse of rolling and spinning friction"),
    Field("contact_impulse", ("worlds", "pairs", 4, 3), "stored", "N s", "impulse of the last kick"),
    Field(
        "contact_slip", ("worlds", "pairs", 4, 3), "stored", "m", "slip of a sticking point, or deflection of bristles"
    ),
    Field("contact_arm", ("worlds", "pairs", 4, 6), "stored", "m", "previous point relative to both centers of mass"),
    Field("contact_age", ("worlds", "pairs", 4), "int", "-", "number of substeps in which a point has existed"),
)
CONTACT_STATE_FIELDS: tuple[Field, ...] = (
    *CARRIED_FIELDS,
    Field("pair_count", ("worlds",), "int", "-", "number of pairs whose boxes overlap"),
    Field("pair_peak", ("worlds",), "int", "-", "maximum number of pairs so far, also above the capacity"),
    Field("pair_overflow", ("worlds",), "int", "-", "number of pairs above the capacity, summed over steps"),
    Field("contact_mode", ("worlds", "pairs", 4), "int", "-", "flight, sliding or sticking"),
    Field("contact_anchor", ("worlds", "pairs", 4, 6), "pose", "m", "points on A and B from the centers of mass"),
)
CONTACT_WORK_FIELDS: tuple[Field, ...] = (
    Field("shape_position", ("shapes", 3), "pose", "m", "origin of the shape's frame in the world"),
    Field("shape_rotation", ("shapes", 9), "pose", "-", "rotation matrix, shape to world"),
    Field("shape_margin", ("shapes",), "pose", "m", "widening of a shape's box"),
    Field("shape_lower", ("shapes", 3), "pose", "m", "lower corner of the widened box, world frame"),
    Field("shape_upper", ("shapes", 3), "pose", "m", "upper corner of the widened box, world frame"),
    Field("shape_cell", ("shapes", 3), "int", "-", "cell of the grid"),
    Field("fat_lower", ("grid_shapes", 3), "pose", "m", "lower corner of the wide box at the last search of the grid"),
    Field("fat_upper", ("grid_shapes", 3), "pose", "m", "upper corner of the wide box at the last search of the grid"),
    Field("neighbor_shape", ("grid_shapes", PARTNERS), "int", "-", "later shapes whose wide boxes overlap, ascending"),
    Field("neighbor_count", ("grid_shapes",), "int", "-", "number of these shapes, also above the capacity"),
    Field("search_owner", (), "int", "-", "1 + index of the world to which the wide boxes belong"),
    Field("searching", (), "int", "-", "1: a shape has left its wide box, so the grid search runs again"),
    Field(
        "pair_start", ("shape_slots",), "int", "-", "index of the first pair of each shape as A, and number of pairs"
    ),
    Field("bucket_start", ("bucket_slots",), "int", "-", "index of the first member of each bucket of the grid"),
    Field("bucket_cursor", ("bucket_slots",), "int", "-", "number of members of a bucket so far"),
    Field("bucket_shape", ("grid_shapes",), "int", "-", "members of the buckets"),
    Field("large_count", ("large_parts",), "int", "-", "number of partners of each large shape, by part of the shapes"),
    Field("scan_sum", ("scan_parts",), "int", "-", "sums of parts of a list"),
    Field("manifold", ("record_slots", RECORD), "real", "-", "records of the manifolds (contact_record.cuh)"),
    Field("record_anchor", ("anchor_slots", ANCHOR), "pose", "m", "anchors and normals of the records"),
    Field("pair_bend", ("pairs", 3), "real", "-", "rotation of the normal since the last step"),
    Field(
        "pair_seam", ("seam_pairs",), "int", "-", "points to remove and normals to replace at seams of tiles, as bits"
    ),
    Field("manifold_color", ("pairs",), "int", "-", "color; -1: overflow, -2: no contact, -3: on an articulated body"),
    Field(
        "color_first", ("color_slots",), "int", "-", "start of each color, then of overflow and articulated manifolds"
    ),
    Field("color_size", ("color_slots",), "int", "-", "number of manifolds in each list"),
    Field("color_member", ("record_slots",), "int", "-", "manifolds by color; -1 fills unused lanes"),
    Field("record_index", ("pairs",), "int", "-", "index of the record of each pair; records are ordered by color"),
    Field("incident_start", ("incident_slots",), "int", "-", "index of the first manifold on each body"),
    Field("incident_cursor", ("incident_slots",), "int", "-", "number of manifolds in the list of a body so far"),
    Field("incident", ("incidents",), "int", "-", "manifolds by body"),
    Field("color_count", ("color_parts",), "int", "-", "number of manifolds of each list in earlier parts of pairs"),
    Field("next_ticket", (), "int", "-", "next ticket (tickets.cuh)"),
    Field("tickets_ended", (), "int", "-", "number of completed tickets"),
    Field("blocks_ended", (), "int", "-", "number of blocks without further tickets"),
    Field("body_colors", ("bodies", 2), "int", "-", "bit mask of the used colors of a body"),
    Field("body_parts", ("bodies",), "int", "-", "number of overflow sides on a body, at least 1"),
    Field("part_start", ("body_slots",), "int", "-", "index of the first overflow side of a body"),
    Field("part_side", ("pair_sides",), "int", "-", "overflow sides (manifold * 2 + side) by body"),
    Field("part_change", ("pair_sides", 6), "real", "m/s", "velocity changes by overflow sides"),
    Field("path_count", ("articulated_slots",), "int", "-", "number of pivots on the path of an articulated manifold"),
    Field("path_columns", ("articulated_slots",), "int", "-", "number of columns of the path: 3, or 6 with torques"),
    Field("path_start", ("articulated_slots",), "int", "-", "index of the first pivot of the path"),
    Field("tree_touched", ("tree_slots",), "int", "-", "1: this elimination tree has a body in contact, by root"),
    Field("path_pivot", ("path_slots",), "int", "-", "pivots of the paths, in elimination order"),
    Field("path_row", ("path_slots",), "int", "-", "first row of the constraint of each pivot of the paths"),
    Field("path_w", ("path_slots", 6, "block"), "real", "m/s", "W = K^-1 L^-1 S J M^-1 C^T, by columns"),
    Field("pivot_inverse", ("direction_rows",), "real", "kg", "E^-1 of the pivots D = K E K^T"),
    Field("path_part", (6, "path_rows"), "real", "m/s", "W^T x of one manifold, row by row"),
    Field("path_wrench", ("path_wrenches", 6), "real", "N s", "wrench that a sweep has added to a manifold"),
    Field("point_floor", ("articulated_slots", 4, 2), "real", "1/kg", "compliance along normal and tangents"),
    Field("island_count", (), "int", "-", "number of islands for Newton's method; 0: the solver sweeps"),
    Field("island_largest", (), "int", "-", "maximum number of manifolds in an island"),
    Field("island_slot", ("condensed_slots",), "int", "-", "index of the first manifold of each island"),
    Field("island_failed", ("condensed_slots",), "int", "-", "1: Newton's method has failed in this island"),
    Field("island_table", (4, "island_nodes"), "int", "-", "search for islands (contact_islands.cuh)"),
    Field("path_island", ("island_paths",), "int", "-", "island of an articulated manifold, or -2 without island"),
    Field("condensed_fits", (), "int", "-", "1: condensed_response belongs to the current factor"),
    Field("condensed_failed", (), "int", "-", "1: Newton's method has not solved all contacts of this pass"),
    Field("condensed_member", ("condensed_slots",), "int", "-", "manifolds for Newton's method, by island"),
    Field("condensed_path", ("condensed_slots",), "int", "-", "index in the list of articulated manifolds, or -1"),
    Field("condensed_island", ("condensed_slots",), "int", "-", "island of each manifold"),
    Field("condensed_start", ("condensed_slots",), "int", "-", "index of the first impulse of each manifold"),
    Field("condensed_wrench", ("condensed_total", 6), "real", "-", "unit wrench of each impulse"),
    Field("condensed_index", (6, "condensed_total"), "int", "-", "kind and indices (contact_condense.cuh)"),
    Field("condensed_vector", (13, "condensed_total"), "real", "N s", "impulses, velocities (contact_newton.cuh)"),
    Field(
        "condensed_response",
        ("condensed_total", "condensed_numbers"),
        "real",
        "1/kg",
        "velocities due to unit impulses, by columns",
    ),
    Field("condensed_row", ("condensed_equations",), "real", "N s", "Newton's equations and their right-hand sides"),
    Field("newton_square", (), "real", "N2 s2", "squared distance of the impulses from their projections"),
    Field("newton_trial", (), "real", "N2 s2", "squared distance in a trial"),
    Field("newton_bound", (), "real", "m/s", "maximum velocity change that one impulse may cause"),
    Field("newton_damping", (), "real", "-", "damping of Newton's equations"),
    Field("newton_fraction", (), "real", "-", "fraction of the Newton step that a trial takes"),
    Field("newton_trials", (), "int", "-", "remaining trials of the step"),
    Field("newton_unknowns", (), "int", "-", "number of impulses that a step of Newton's method changes"),
    Field("newton_remaining", (), "int", "-", "remaining steps"),
    Field("sweep_square", ("pairs",), "real", "J", "squared impulse changes of a sweep, by manifold"),
    Field("square_sum", ("scan_parts",), "pose", "J", "sums of parts of sweep_square"),
    Field("square_before", (), "pose", "J", "squared impulse changes of the previous sweep"),
    Field("beta", (), "real", "-", "fraction of the previous search direction that the solver keeps"),
    Field("twist_sweep", ("contact_bodies", 6), "real", "m/s", "velocities before a sweep"),
    Field("twist_direction", ("contact_bodies", 6), "real", "m/s", "velocity change due to the search direction"),
    Field("row_sweep", ("direction_rows",), "real", "N s", "joints' correction before a sweep"),
    Field("row_direction", ("direction_rows",), "real", "N s", "search direction of the joints' correction"),
    Field("sweep_change", ("contact_sweeps",), "real", "N s", "maximum change of an impulse in each sweep"),
    Field("sweep_count", (), "int", "-", "number of sweeps of the last solve"),
    Field("contact_change", (), "real", "N s", "maximum change of a contact impulse in this sweep"),
    Field("largest_load", (), "real", "N s", "maximum normal impulse in this sweep"),
    Field("forward_only", (), "int", "-", "1: trial step (stage forward)"),
    Field("substep", (), "int", "-", "number of substeps since the search for contacts"),
    Field("touching", (), "int", "-", "number of manifolds with points"),
    Field("pushing", (), "int", "-", "1: penetration needs correction"),
    Field("relaxing", (), "int", "-", "1: velocities change after the drift"),
    Field("kept_solved", ("kept_pairs", SOLVED_SIZE), "real", "N s", "impulses of manifolds that the guard has stored"),
)
