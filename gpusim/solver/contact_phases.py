"""Table of the contact phases. See phases.py."""

from __future__ import annotations

from gpusim.solver.nodes import Phase

RECORDS, RECORD_ROOM = "record_items(w)", "w.record_slots() / ITEM_LANES"
"""Two C++ expressions: number of used groups of ITEM_LANES contact manifolds, and maximum number of groups."""

CONTACT_PHASES = (
    Phase("start_search", reads="search_owner", writes="searching"),
    Phase(
        "locate_shape",
        "touchable",
        reads="angular_momentum fat_lower fat_upper linear_velocity position rotation",
        writes="searching shape_lower shape_margin shape_position shape_rotation shape_upper",
    ),
    Phase("widen_shape", "touchable", reads="shape_lower shape_upper", writes="fat_lower fat_upper shape_cell"),
    Phase("clear_bucket", "bucket_slots", writes="bucket_cursor bucket_start"),
    Phase("count_member", "touchable", reads="fat_lower fat_upper shape_cell", writes="bucket_start"),
    Phase("scan_bucket_part", "SCAN_PARTS", bound="PARTS", reads="bucket_start", writes="scan_sum"),
    Phase("scan_sums", writes="scan_sum"),
    Phase("scan_bucket_rest", "SCAN_PARTS", bound="PARTS", reads="scan_sum", writes="bucket_start"),
    Phase(
        "enter_bucket",
        "touchable",
        reads="bucket_start fat_lower fat_upper shape_cell",
        writes="bucket_cursor bucket_shape",
    ),
    Phase("sort_bucket", "w.buckets() + 1", bound="bucket_slots", reads="bucket_start", writes="bucket_shape"),
    Phase(
        "find_neighbors",
        "touchable",
        reads="bucket_shape bucket_start fat_lower fat_upper shape_cell",
        writes="neighbor_count neighbor_shape",
    ),
    Phase(
        "count_large",
        "large_items(w)",
        room="large_parts",
        reads="bucket_shape bucket_start shape_lower shape_upper",
        writes="large_count",
    ),
    Phase(
        "count_pairs",
        "shape_slots",
        reads="bucket_shape bucket_start fat_lower fat_upper large_count neighbor_count neighbor_shape shape_cell "
        "shape_lower shape_upper",
        writes="pair_start",
    ),
    Phase("scan_pair_part", "SCAN_PARTS", bound="PARTS", reads="pair_start", writes="scan_sum"),
    Phase("scan_pair_rest", "SCAN_PARTS", bound="PARTS", reads="scan_sum", writes="pair_start"),
    Phase(
        "list_pairs",
        "touchable",
        reads="bucket_shape bucket_start fat_lower fat_upper neighbor_count neighbor_shape pair_start shape_cell "
        "shape_lower shape_upper",
        writes="pair_shapes",
    ),
    Phase(
        "list_large",
        "large_items(w)",
        room="large_parts",
        reads="bucket_shape bucket_start large_count pair_start shape_lower shape_upper",
        writes="pair_shapes",
    ),
    Phase("count_close", reads="pair_start", writes="pair_count pair_overflow pair_peak search_owner substep"),
    Phase(
        "find_manifold",
        "pairs",
        reads="pair_count pair_shapes position rotation shape_margin shape_position shape_rotation",
        writes="contact_age contact_anchor contact_arm contact_feature contact_impulse contact_mode contact_slip "
        "pair_bend pair_force pair_guess pair_normal pair_points pair_torque",
    ),
    Phase(
        "judge_seam",
        "seam_pairs",
        reads="contact_anchor pair_count pair_normal pair_points pair_shapes rotation",
        writes="pair_seam",
    ),
    Phase(
        "drop_seam",
        "seam_pairs",
        reads="pair_count pair_seam pair_shapes rotation",
        writes="contact_age contact_anchor contact_arm contact_feature contact_impulse contact_mode contact_slip "
        "pair_bend pair_force pair_normal pair_points pair_torque",
    ),
    Phase("clear_colors", "bodies", writes="body_colors body_parts"),
    Phase("color_pairs", reads="pair_count pair_shapes", writes="body_colors manifold_color pair_points touching"),
    Phase("list_colors", reads="pair_count", writes="color_first color_member color_size manifold_color record_index"),
    Phase("clear_incidents", "incident_slots", writes="incident_cursor incident_start touching"),
    Phase(
        "count_incidents",
        "pairs",
        reads="pair_count pair_points pair_shapes",
        writes="incident_start manifold_color touching",
    ),
    Phase("scan_incident_part", "SCAN_PARTS", bound="PARTS", reads="incident_start", writes="scan_sum"),
    Phase("scan_incident_rest", "SCAN_PARTS", bound="PARTS", reads="scan_sum", writes="incident_start"),
    Phase(
        "enter_incidents",
        "pairs",
        reads="incident_start pair_count pair_points pair_shapes",
        writes="incident incident_cursor",
    ),
    Phase(
        "color_in_order",
        "pairs",
        reads="incident incident_start pair_count pair_shapes",
        writes="body_colors manifold_color next_ticket",
    ),
    Phase("count_colors", "PARTS", reads="pair_count", writes="color_count manifold_color"),
    Phase("sum_color", "w.max_colors() + 2", bound="color_slots", writes="color_count color_size"),
    Phase("start_colors", reads="color_size", writes="color_first color_member"),
    Phase(
        "fill_colors",
        "PARTS",
        reads="color_first manifold_color pair_count",
        writes="color_count color_member record_index",
    ),
    Phase("clear_overflow", "body_slots", reads="color_size", writes="incident_cursor part_start"),
    Phase("count_overflow", "pair_sides", reads="color_first color_member color_size pair_shapes", writes="part_start"),
    Phase("scan_overflow_part", "SCAN_PARTS", bound="PARTS", reads="color_size part_start", writes="scan_sum"),
    Phase("scan_overflow_rest", "SCAN_PARTS", bound="PARTS", reads="color_size scan_sum", writes="part_start"),
    Phase(
        "enter_overflow",
        "pair_sides",
        reads="color_first color_member color_size pair_shapes part_start",
        writes="incident_cursor part_side",
    ),
    Phase("sort_overflow", "bodies", reads="color_size part_start", writes="body_parts part_side"),
    Phase(
        "list_overflow",
        reads="color_first color_member color_size pair_shapes",
        writes="body_parts part_side part_start",
    ),
    Phase(
        "load_pair",
        RECORDS,
        room=RECORD_ROOM,
        bound="record_slots",
        reads="color_first color_member contact_age contact_anchor contact_arm contact_impulse contact_slip pair_bend "
        "pair_force pair_normal pair_points pair_shapes pair_torque rotation",
        writes="manifold record_anchor",
    ),
    Phase(
        "store_pair",
        RECORDS,
        room=RECORD_ROOM,
        bound="record_slots",
        reads="color_first color_member manifold pair_points record_anchor",
        writes="contact_age contact_anchor contact_arm contact_impulse contact_mode contact_slip pair_force "
        "pair_normal pair_torque",
    ),
    Phase("follow_shape", "touchable", reads="position rotation substep", writes="shape_position shape_rotation"),
    Phase(
        "follow_pair",
        RECORDS,
        room=RECORD_ROOM,
        bound="record_slots",
        reads="color_first color_member contact_feature pair_count pair_points pair_shapes position rotation "
        "shape_margin shape_position shape_rotation substep",
        writes="manifold pair_guess record_anchor",
    ),
    Phase(
        "prepare_pair",
        RECORDS,
        room=RECORD_ROOM,
        bound="record_slots",
        reads="body_parts color_first color_member inertia_inverse_effective kick_before position record_anchor "
        "rotation step_last",
        writes="manifold",
    ),
    Phase(
        "guard_pair",
        "*w.pair_count()",
        room="pairs",
        reads="guard_action pair_count pair_points record_index",
        writes="kept_solved manifold",
    ),
    Phase(
        "count_path",
        "articulated_size(w)",
        room="articulated_slots",
        reads="color_first color_member color_size manifold pair_shapes record_index",
        writes="path_columns path_count",
    ),
    Phase(
        "start_paths",
        reads="color_first color_member color_size pair_shapes path_count",
        writes="all_in_contact path_start tree_touched",
    ),
    Phase(
        "merge_path",
        "articulated_size(w)",
        room="articulated_slots",
        reads="color_first color_member color_size pair_shapes path_start",
        writes="path_pivot path_row",
    ),
    Phase(
        "solve_path",
        "path_items(w)",
        room="w.articulated_slots() * 3",
        reads="color_first color_member color_size factor_blocks jacobian lower manifold pair_shapes path_columns "
        "path_count path_pivot path_start record_index scale",
        writes="path_w",
    ),
    Phase(
        "respond_path",
        "articulated_size(w)",
        room="articulated_slots",
        reads="body_parts color_first color_member color_size pair_points pair_shapes path_columns path_count "
        "path_row path_start path_w pivot_inverse record_index",
        writes="manifold point_floor",
    ),
    Phase(
        "condense_list",
        reads="color_first color_member color_size manifold pair_shapes record_index touching",
        writes="condensed_failed condensed_fits condensed_island condensed_member condensed_path condensed_start "
        "island_count island_largest island_slot island_table path_island",
    ),
    Phase("forget_condensed", writes="condensed_fits"),
    Phase(
        "condense_manifold",
        "condensed_size(w)",
        room="condensed_slots",
        reads="condensed_member condensed_start island_count island_slot manifold record_index",
        writes="condensed_index condensed_wrench",
    ),
    Phase(
        "condense_pair",
        "condensed_pairs(w)",
        room="w.condensed_slots() * w.island_manifolds()",
        reads="condensed_island condensed_member condensed_path condensed_start condensed_wrench "
        "island_largest island_slot manifold path_columns path_count path_pivot path_row path_start path_w "
        "pivot_inverse record_index",
        writes="condensed_response",
    ),
    Phase("keep_condensed", writes="condensed_fits"),
    Phase(
        "start_contact_sweeps",
        writes="contact_change done greatest_impulse largest_change largest_load sweep_count wanted_change",
    ),
    Phase("middle_body", "bodies", reads="rotation twist_kicked", writes="midpoint"),
    Phase(
        "set_bias_pair",
        RECORDS,
        room=RECORD_ROOM,
        bound="record_slots",
        reads="color_first color_member forward_only midpoint pair_points pair_shapes rotation step_last touching "
        "twist_before twist_kicked",
        writes="manifold pushing",
    ),
    Phase("warm_contact", reads="color_first color_member", writes="manifold part_change twist"),
    Phase(
        "sweep_contact",
        reads="color_first color_member pair_shapes",
        writes="contact_change largest_load manifold part_change sweep_square twist",
    ),
    Phase("add_contact_parts", "bodies", reads="color_size part_change part_side part_start", writes="twist"),
    Phase("start_direction_sum", writes="condensed_failed done square_before sweep_count"),
    Phase("start_direction_body", "bodies * 6", reads="twist", writes="twist_direction twist_sweep"),
    Phase(
        "start_direction_pair",
        RECORDS,
        room=RECORD_ROOM,
        bound="record_slots",
        reads="color_first color_member",
        writes="manifold",
    ),
    Phase("start_direction_row", "rows", reads="delta", writes="row_direction row_sweep"),
    Phase(
        "sum_squares",
        "square_parts(w)",
        room="PARTS",
        reads="pair_count pair_points sweep_square",
        writes="square_sum",
    ),
    Phase("choose_beta", reads="pair_count square_sum", writes="beta square_before"),
    Phase(
        "extend_pair",
        RECORDS,
        room=RECORD_ROOM,
        bound="record_slots",
        reads="color_first color_member beta",
        writes="manifold",
    ),
    Phase("extend_body", "body_items(w)", bound="bodies * 6", reads="beta", writes="twist twist_direction twist_sweep"),
    Phase(
        "extend_row",
        "row_items(w, w.constraints())",
        bound="rows",
        reads="beta",
        writes="delta row_direction row_sweep",
    ),
    Phase(
        "end_contact_sweep",
        reads="since_factor",
        writes="contact_change contact_residual_now done largest_change largest_load sweep_change sweep_count",
    ),
    Phase("start_push", "bodies * 6", writes="displacement"),
    Phase("start_push_row", "rows", writes="delta"),
    Phase("push_contact", reads="color_first color_member", writes="displacement manifold part_change"),
    Phase("add_push_parts", "bodies", reads="color_size part_change part_side part_start", writes="displacement"),
    Phase("end_push", "bodies", reads="color_size delta mass_jacobian", writes="displacement"),
    Phase(
        "slip_pair",
        RECORDS,
        room=RECORD_ROOM,
        bound="record_slots",
        reads="color_first color_member twist",
        writes="manifold substep",
    ),
    Phase(
        "relax_pair",
        RECORDS,
        room=RECORD_ROOM,
        bound="record_slots",
        reads="color_first color_member",
        writes="manifold relaxing",
    ),
)
