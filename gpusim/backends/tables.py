"""Topology and sizes of a model for the kernels, as flat int32 and float64 arrays (tables)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gpusim.backends.contact_tables import CONTACT_SIZES, CONTACT_TABLES, contact_tables
from gpusim.compiler.ray_sensors import COLUMNS as RAY_COLUMNS
from gpusim.compiler.ray_sensors import ray_table
from gpusim.compiler.topology import Topology, axes_in_loops
from gpusim.description.config import SolverConfig
from gpusim.model.coordinates import COLUMNS, coordinates
from gpusim.model.model import Model
from gpusim.model.paths import find_paths, path_sizes
from gpusim.model.ropes import COLUMNS as ROPE_COLUMNS
from gpusim.model.ropes import rope_table
from gpusim.model.sensors import COLUMNS as SENSOR_COLUMNS
from gpusim.model.sensors import sensor_table
from gpusim.model.sites import COLUMNS as SITE_COLUMNS
from gpusim.model.sites import site_table
from gpusim.reference.layout import Layout
from gpusim.reference.light_bodies import heavy_share
from gpusim.reference.rotors import rotors
from gpusim.typing import Array

# Columns of the element tables. Columns that contain bodies or indices are int32. All other columns are float64.
_COLUMNS = {
    "dot": ("body_a", "body_b", "body_u", "u", "vector_a", "vector_b", "linear", "c0"),
    "spin": ("body_a", "body_b", "owner", "u", "angle", "component", "other", "frame_a", "frame_b"),
    "line": ("body_a", "body_b", "vector_a", "vector_b", "length", "wrap"),
    "wrap": (
        "body_a", "body_b", "body", "side_body", "cylinder", "radius", "vector_a", "vector_b", "center", "side",
        "axis_x", "axis_y",
    ),
    "angle": ("body_a", "body_b", "owner", "axis", "ref_a", "ref_b", "middle"),
    "coupling": ("row", "start", "element", "factor", "slot", "curved", "curve"),
}  # fmt: skip
_FLOATS = {
    "u", "other", "vector_a", "vector_b", "linear", "c0", "frame_a", "frame_b", "length", "axis", "ref_a", "ref_b",
    "factor", "curve", "radius", "center", "side", "axis_x", "axis_y",
}  # fmt: skip
_INDICES = (
    "element_row", "element_body_a", "element_body_b", "axis_element", "axis_row", "row_element", "row_coupling",
    "row_rigid", "constraint_rows", "constraint_slots", "constraint_in_loop", "constraint_may_depend", "axis_in_loop",
    "row_used", "constraint_bodies", "body_side_start", "body_side", "dynamic", "body_free", "conveyor",
    "product_start", "product_i", "product_j", "block_row", "block_column",
    "level_pivot", "pivot", "pivot_edge", "level_edge", "edge_block", "edge_pivot", "edge_row",
    "level_target", "target_block", "update_start", "update_left", "update_right",
    "level_forward", "forward_target", "forward_start", "forward_edge",
    "color_start", "color_constraint", "color_of", "overflow", "overflow_load", "constraint_axis_start",
    "constraint_axis", "axis_term_start", "axis_term", "axis_clamp_start", "axis_clamp", "actuator_term_axis",
    "constraint_coupled", "coupled_constraint", "coupled_start", "coupled_axis",
    "body_push_start", "body_push", "dot_point_start", "body_path_start", "body_path", "body_hub", "hub_body",
)  # fmt: skip
TABLE_TYPES: dict[str, str] = {
    **{
        f"{table}_{column}": "double" if column in _FLOATS else "int"
        for table, columns in _COLUMNS.items()
        for column in columns
    },
    **dict.fromkeys(_INDICES, "int"),
    **{f"coordinate_{name}": kind for name, kind in COLUMNS.items()},
    "axis_coordinate": "int",
    "command_map": "double",
    "sum_start": "int",
    "sum_coordinate": "int",
    "sum_factor": "double",
    "side_arm": "double",
    "heavy_share": "double",
    "rotor": "double",
    "body_center": "double",
    **{f"site_{name}": kind for name, kind in SITE_COLUMNS.items()},
    **SENSOR_COLUMNS,
    **RAY_COLUMNS,
    **ROPE_COLUMNS,
    **CONTACT_TABLES,
}
"""C types of the tables by name."""
SIZES = (
    "worlds", "bodies", "constraints", "block", "slots", "rows", "sides", "dots", "dot_points", "spins", "lines",
    "elements", "angles", "free_bodies", "couplings", "axes", "controls", "joint_sensors", "contact_sensors", "ropes",
    "wraps", "pulls", "actuator_terms", "refitted_terms", "clamps", "blocks", "edges", "levels", "coupled",
    "swept_constraints", "loop_constraints", "dependent_constraints", "rotors", "colors", "overflow_constraints",
    "overflow_sides", "color_axes", "actuators", "hubs", *CONTACT_SIZES,
)  # fmt: skip


def model_tables(model: Model, config: SolverConfig, num_worlds: int) -> tuple[dict[str, Array], dict[str, int]]:
    """Return a dict of the tables of a model (see TABLE_TYPES), and a dict of the model sizes (see SIZES)."""
    t, layout = model.topology, Layout(model.topology)
    direct, swept = config.direct, int(t.swept.sum())
    colored = bool(swept) or not direct
    tables: dict[str, Array] = {}
    for name, columns in _COLUMNS.items():
        for column in columns:
            tables[f"{name}_{column}"] = getattr(getattr(t, name), column)
    tables.update(_row_tables(t, direct))
    tables["side_arm"], tables["row_rigid"] = layout.side_arm, layout.row_kinds
    tables["heavy_share"], tables["rotor"] = heavy_share(model), rotors(model, config)
    tables.update(_elimination_tables(t) if direct else _no_elimination())
    tables.update(_color_tables(t, config, colored))
    tables.update(_axis_tables(model))
    tables["axis_in_loop"] = np.zeros(t.axis_row.size)
    tables["axis_in_loop"][axes_in_loops(t, rope_table(model)["rope_axis"])] = direct
    tables.update(_coupled_tables(model))
    tables.update(_signal_tables(model))
    tables.update(contact_tables(model.contact))
    typed = {
        name: np.ascontiguousarray(tables[name], dtype=np.int32 if kind == "int" else np.float64)
        for name, kind in TABLE_TYPES.items()
    }
    overflow = int(typed["overflow"].size)
    return typed, {
        "worlds": num_worlds,
        "bodies": t.num_bodies + 1,
        "constraints": t.num_constraints,
        "block": t.block,
        "slots": t.slots,
        "rows": t.num_constraints * t.block,
        "sides": t.num_constraints * t.slots,
        "dots": t.dot.u.shape[0],
        "dot_points": typed["dot_point_start"].size - 1,
        "spins": t.spin.u.shape[0],
        "lines": t.line.length.size,
        "wraps": t.wrap.radius.size,
        "elements": t.num_elements,
        "angles": t.angle.axis.shape[0],
        "free_bodies": int(t.free.sum()),
        "couplings": t.coupling.row.size,
        "axes": t.axis_row.size,
        "controls": len(model.controls),
        "joint_sensors": int(typed["joint_sensor_constraint"].size),
        "ropes": int(typed["rope_axis"].size),
        "pulls": typed["tension_start"].size - 1,
        "contact_sensors": int(typed["contact_sensor_body"].size),
        "actuator_terms": int(typed["actuator_term_axis"].size),
        "refitted_terms": sum(len(g.specs) for g in model.groups if "relinearize" in g.type.kernel),
        "clamps": int(typed["axis_clamp"].size),
        "blocks": int(typed["block_row"].size),
        "edges": int(typed["edge_block"].size),
        "loop_constraints": int(t.loops.sum()) if direct else 0,
        "rotors": int((tables["rotor"][:, 3] > 0.0).sum()),
        "dependent_constraints": int(typed["constraint_may_depend"].sum()),
        "levels": typed["level_pivot"].size - 1,
        "coupled": t.coupled_constraint.size,
        "swept_constraints": swept,
        "colors": typed["color_start"].size - 1 if colored else 0,
        "overflow_constraints": overflow,
        "overflow_sides": t.num_constraints * t.slots if overflow else 0,
        "color_axes": t.axis_row.size if colored else 0,
        "actuators": sum(len(g.specs) for g in model.groups),
        "hubs": len(t.hubs) if direct else 0,
        "max_colors": config.max_colors,
        **(contacts := model.contact.sizes(config, t.dynamic)),
        **path_sizes(model, contacts),
        **({"contact_sweeps": config.iterations} if swept else {}),
    }


def starts(counts: Iterable[int]) -> Array:
    """Return the start index of each list in a packed array, followed by the end index of the last list."""
    return np.concatenate([[0], np.cumsum(np.fromiter(counts, dtype=np.int64))]).astype(np.int64)


def packed(lists: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    """Pack lists into one array. Return the start indices of :func:`starts`, and the packed array."""
    return starts(len(x) for x in lists), np.array([v for x in lists for v in x], dtype=np.int64)


def _dot_points(t: Topology) -> Array:
    """Return the start index of each group of dot elements that share bodies and points, and the number of elements."""
    dot, count = t.dot, t.dot.u.shape[0]
    kinds = np.column_stack([dot.body_a, dot.body_b, dot.linear, dot.vector_a, dot.vector_b])
    first = np.flatnonzero(np.append(True, (kinds[1:] != kinds[:-1]).any(axis=1))) if count else np.zeros(0)
    return np.append(first, count)


def slots_taken(t: Topology) -> Array:
    """Return the number of body slots that each constraint uses (at least 2), (constraints,)."""
    numbers = np.arange(1, t.slots + 1)
    return np.asarray(np.max(np.where(t.constraint_bodies < t.num_bodies, numbers, 2), axis=1, initial=2))


def _row_tables(t: Topology, direct: bool) -> dict[str, Array]:
    rows = t.num_constraints * t.block
    element_row = np.full(t.num_elements, -1)
    element_row[t.element_row] = t.element_row_index
    row_element, row_coupling = np.full(rows, -1), np.full(rows, -1)
    row_element[t.rigid_row] = t.rigid_element
    row_coupling[t.coupling.rigid_row] = np.arange(t.coupling.rigid)
    sides = [row[row < t.num_constraints * t.slots] for row in t.body_sides]
    return {
        "dot_point_start": _dot_points(t),
        "element_row": element_row,
        "element_body_a": t.element_body_a,
        "element_body_b": t.element_body_b,
        "axis_element": t.axis_element,
        "axis_row": t.axis_row,
        "row_element": row_element,
        "row_coupling": row_coupling,
        "row_used": t.row_used,
        "constraint_rows": t.row_used.sum(axis=1),
        "constraint_slots": slots_taken(t),
        "constraint_in_loop": t.in_loop,
        "constraint_may_depend": t.may_depend & direct,
        "constraint_bodies": t.constraint_bodies,
        "body_side_start": starts(len(s) for s in sides),
        "body_side": np.concatenate([*sides, np.zeros(0)]),
        "dynamic": t.dynamic,
        "body_free": t.free,
        "conveyor": t.conveyor,
    }


_ELIMINATION = (
    "product_start", "product_i", "product_j", "block_row", "block_column", "level_pivot", "pivot", "pivot_edge",
    "level_edge", "edge_block", "edge_pivot", "edge_row", "level_target", "target_block", "update_start", "update_left",
    "update_right", "level_forward", "forward_target", "forward_start", "forward_edge", "body_path_start", "body_path",
    "body_hub", "hub_body",
)  # fmt: skip


def _no_elimination() -> dict[str, Array]:
    """Return empty factorization tables for the colored solver."""
    tables: dict[str, Array] = dict.fromkeys(_ELIMINATION, np.zeros(0))
    tables["level_pivot"] = np.zeros(1)
    return tables


def _elimination_tables(t: Topology) -> dict[str, Array]:
    """Return the block operations of the factorization as tables, grouped by target block."""
    e, assembly = t.hub_factorization
    products = _by_target(assembly.rounds, e.num_blocks)
    tables: dict[str, Array] = {
        "product_start": starts(len(p) for p in products),
        "product_i": np.array([i for p in products for i, _ in p]),
        "product_j": np.array([j for p in products for _, j in p]),
        "block_row": e.block_row,
        "block_column": e.block_column,
    }
    names = ("level_pivot", "level_edge", "level_target", "level_forward")
    counts: dict[str, list[int]] = {name: [] for name in names}
    lists: dict[str, list[int]] = {
        n: [] for n in ("pivot", "edge_block", "edge_pivot", "edge_row", "target_block", "forward_target")
    }
    pivot_edges: list[int] = []
    updates: list[list[tuple[int, int]]] = []
    forwards: list[list[int]] = []
    for level in e.levels:
        first = len(lists["edge_block"])
        counts["level_pivot"].append(level.pivots.size)
        counts["level_edge"].append(level.edge.size)
        lists["pivot"] += level.pivots.tolist()
        lists["edge_block"] += level.edge.tolist()
        lists["edge_pivot"] += level.edge_pivot.tolist()
        lists["edge_row"] += level.edge_row.tolist()
        pivot_edges += [int(np.sum(level.edge_pivot == k)) for k in level.pivots]
        grouped = _gather(level.updates)
        counts["level_target"].append(len(grouped))
        lists["target_block"] += list(grouped)
        updates += [[(first + a, first + b) for a, b in ops] for ops in grouped.values()]
        ahead = _gather(level.forward)
        counts["level_forward"].append(len(ahead))
        lists["forward_target"] += list(ahead)
        forwards += [[first + edge for edge, _ in ops] for ops in ahead.values()]
    for name in names:
        tables[name] = starts(counts[name])
    tables.update({name: np.array(values) for name, values in lists.items()})
    tables["pivot_edge"] = starts(pivot_edges)
    tables["update_start"] = starts(len(u) for u in updates)
    tables["update_left"] = np.array([a for u in updates for a, _ in u])
    tables["update_right"] = np.array([b for u in updates for _, b in u])
    tables["forward_start"], tables["forward_edge"] = packed(forwards)
    tables["body_path_start"], tables["body_path"] = packed(find_paths(t).bodies)
    tables["body_hub"] = np.array([t.hubs.get(b, -1) for b in range(t.num_bodies + 1)])
    tables["hub_body"] = np.array([b if b in t.hubs else -1 for b in t.hub_body.tolist()])
    return tables


def _gather(rounds: list[tuple[Array, Array, Array]]) -> dict[int, list[tuple[int, int]]]:
    """Return the list of operand pairs (left, right) for each target block, in the order of ``rounds``."""
    targets: dict[int, list[tuple[int, int]]] = {}
    for target, left, right in rounds:
        for k, a, b in zip(target.tolist(), left.tolist(), right.tolist(), strict=True):
            targets.setdefault(k, []).append((a, b))
    return dict(sorted(targets.items()))


def _by_target(rounds: list[tuple[Array, Array, Array]], count: int) -> list[list[tuple[int, int]]]:
    gathered = _gather(rounds)
    return [gathered.get(k, []) for k in range(count)]


def _color_tables(t: Topology, config: SolverConfig, colored: bool) -> dict[str, Array]:
    axes: list[list[int]] = [[] for _ in range(t.num_constraints)]
    for axis, row in enumerate(t.axis_row):
        axes[int(row) // t.block].append(axis)
    start, members = packed(axes)
    tables = {"constraint_axis_start": start, "constraint_axis": members}
    if not colored:
        names = ("color_start", "color_constraint", "color_of", "overflow", "overflow_load")
        return tables | dict.fromkeys(names, np.zeros(0))
    sets = t.coloring_for(config.max_colors)
    tables["color_start"], tables["color_constraint"] = packed([c.tolist() for c in sets.colors])
    return tables | {"color_of": sets.color_of, "overflow": sets.overflow, "overflow_load": sets.overflow_load}


def _axis_tables(model: Model) -> dict[str, Array]:
    t = model.topology
    axes: list[list[int]] = [[] for _ in range(t.axis_row.size)]
    clamps: list[list[int]] = [[] for _ in axes]
    bodies: list[list[int]] = [[] for _ in range(t.num_bodies + 1)]
    actuator_term_axis: list[int] = []
    number = 0
    for group in sorted(model.groups, key=lambda g: g.type.name):
        for target in group.axis.tolist():
            if "evaluate" in group.type.kernel:
                axes[target].append(len(actuator_term_axis))
                if group.type.clamped:
                    clamps[target].append(len(actuator_term_axis))
                actuator_term_axis.append(target)
            if "push" in group.type.kernel:
                bodies[target].append(number)
            number += 1
    axis_start, axis_term = packed(axes)
    clamp_start, axis_clamp = packed(clamps)
    push_start, push = packed(bodies)
    return {
        "axis_term_start": axis_start,
        "axis_term": axis_term,
        "axis_clamp_start": clamp_start,
        "axis_clamp": axis_clamp,
        "actuator_term_axis": np.array(actuator_term_axis),
        "body_push_start": push_start,
        "body_push": push,
    }


def _coupled_tables(model: Model) -> dict[str, Array]:
    t = model.topology
    number = np.full(t.num_constraints, -1)
    number[t.coupled_constraint] = np.arange(t.coupled_constraint.size)
    groups = sorted((g for g in model.groups if g.type.coupled), key=lambda g: g.type.name)
    start, axes = packed([own.tolist() for group in groups for own in group.axes])
    return {
        "constraint_coupled": number,
        "coupled_constraint": t.coupled_constraint,
        "coupled_start": start,
        "coupled_axis": axes,
    }


def _signal_tables(model: Model) -> dict[str, Array]:
    read = coordinates(model)
    tables = {f"coordinate_{name}": column for name, column in read.columns.items()}
    center = np.array([b.com for b in model.bodies] + [np.zeros(3)])
    tables |= sensor_table(model, model.topology.constraint_labels)
    tables |= ray_table(model) | rope_table(model)
    tables |= {f"site_{name}": column for name, column in site_table(model).items()}
    tables |= {"command_map": model.control_map.T, "axis_coordinate": read.of_axis, "body_center": center}
    return tables | read.sums
