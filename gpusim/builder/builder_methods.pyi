"""The methods of ModelBuilder that other files attach; made by ci/builder_stub.py --write, not by hand."""

# fmt: off
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from gpusim.actuators.circuit_builder import HydraulicCircuit
from gpusim.actuators.strut import BumpStop
from gpusim.builder.anchors import Anchor
from gpusim.contact.material import Material
from gpusim.description.wraps import Wrap
from gpusim.importers.report import ImportReport
from gpusim.joints.differential import Differential
from gpusim.joints.spatial_tendon import Pulley
from gpusim.transform import Transform
from gpusim.typing import Vector

F = TypeVar("F", bound=Callable[..., Any])

class BuilderMethods:
    """Base class for the methods that :func:`builder_method` attaches."""

    def add_anti_roll_bar(
        self, left: int, right: int, stiffness: float, damping: float = 0.0, left_axis: int = 0,
        right_axis: int = 0, label: str | None = None,
    ) -> int:
        """Add an anti-roll bar: a spring on the difference of two joint coordinates, such as the travels of wheels."""

    def add_brake(
        self, joint: int, torque: float, axis: int = 0, command: float = 0.0, label: str | None = None,
        safe: float | None = None,
    ) -> int:
        """Add a brake on a joint coordinate."""

    def add_bushing(
        self, parent: int, child: int, parent_xform: Transform | None = None,
        child_xform: Transform | None = None, *, stiffness: Any, damping: Any = 0.0, label: str | None = None,
        solver: str | None = None, at: Anchor | None = None,
    ) -> int:
        """Add a bushing: a soft joint with the wrench -K q - C q' on the child. q are translations and rotations."""

    def add_camera(
        self, body: int = -1, xform: Transform | None = None, fov_y: float = 0.7853981633974483,
        label: str | None = None, target: Vector | None = None,
    ) -> int:
        """Add a camera that moves with a body."""

    def add_collision_pair(self, shape_a: int, shape_b: int, material: Material | None = None) -> int:
        """Make two shapes collide regardless of groups and joints, optionally with their own contact material."""

    def add_contact_sensor(self, body: int, site: int | None = None, label: str | None = None) -> int:
        """Add a sensor for all contacts of a body, for example a foot."""

    def add_dc_motor(
        self, joint: int, stall_torque: float, no_load_speed: float, mechanical_time_constant: float,
        electrical_time_constant: float = 0.0, gear_ratio: float = 1.0, axis: int = 0, label: str | None = None,
    ) -> int:
        """Add a DC motor with gearbox. ``sim.control[label]`` is the fraction of the maximum voltage, -1 to 1."""

    def add_differential(
        self, left: int, right: int, shaft: int | None = None, ratio: float = 1.0, kind: str = "open",
        preload: float = 0.0, viscosity: float = 0.0, label: str | None = None,
    ) -> Differential:
        """Add a differential between two joints that rotate in the same direction, such as the spins of two wheels."""

    def add_drag(
        self, body: int, density: float = 0.0, viscosity: float = 0.0, size: Vector | None = None,
        wind: Vector = (0.0, 0.0, 0.0), label: str | None = None,
    ) -> int:
        """Add the drag of a fluid, such as air or water, on a body."""

    def add_force(
        self, body: int, force: Vector, point: Vector | None = None, frame: str = "world",
        label: str | None = None, at: Vector | None = None, torque: Vector = (0.0, 0.0, 0.0),
    ) -> int:
        """Apply a force and an optional torque to a body. ``sim.control[label]`` is the common factor (initially 1)."""

    def add_force_sensor(self, joint: int, label: str | None = None) -> int:
        """Add a force-torque sensor in a joint. The sensor measures the wrench of the child on the parent."""

    def add_gear(
        self, joint_a: int, joint_b: int, ratio: float, axis_a: int = 0, axis_b: int = 0,
        label: str | None = None,
    ) -> int:
        """Couple two joint coordinates by ``velocity_b = ratio * velocity_a``. The gear keeps the initial offset."""

    def add_hydraulic_circuit(
        self, tank_pressure: float = 100000.0, bulk_modulus: float = 1.5e9, label: str | None = None,
        vapor_pressure: float = 0.0,
    ) -> HydraulicCircuit:
        """Add a hydraulic circuit: nodes, valves, pumps, cylinders and motors with one common solve."""

    def add_hydraulic_cylinder(
        self, body_a: int, body_b: int, point_a: Vector | None = None, point_b: Vector | None = None, *,
        area_a: float, area_b: float, volume_a: float, volume_b: float, stroke_min: float, stroke_max: float,
        flow_gain: float, length_offset: float = 0.0, bulk_modulus: float = 1.5e9, supply_pressure: float = 1e7,
        tank_pressure: float = 100000.0, viscous_friction: float = 0.0, dry_friction: float = 0.0,
        brake_force: float = 0.0, overlap_supply: float = 0.0, overlap_drain: float = 0.0,
        valve_gain: float = 1.0, valve_order: int = 2, valve_frequency: float = 157.0, valve_damping: float = 0.8,
        valve_time_constant: float = 0.005, transition_pressure: float = 10000.0, orifice: str = "smooth",
        anticavitation_gain: float = 0.0, piston_mass: float = 0.0, pressure_a: float | None = None,
        pressure_b: float | None = None, hose_volume_a: float = 0.0, hose_volume_b: float = 0.0,
        hose_bulk_modulus: float = float("inf"), cushion_stiffness: float = 0.0, cushion_damping: float = 0.0,
        cushion_length: float = 0.0, stop_restitution: float = 0.0, coupling: str = "implicit",
        label: str | None = None, at_a: Vector | None = None, at_b: Vector | None = None,
        vapor_pressure: float = 0.0,
    ) -> int:
        """Add a hydraulic cylinder with a spool valve between two pins."""

    def add_joint_ball(
        self, parent: int, child: int, parent_xform: Transform | None = None,
        child_xform: Transform | None = None, limit: float = float("inf"), damping: Vector | float = 0.0,
        friction: Vector | float = 0.0, armature: float = 0.0, label: str | None = None,
        solver: str | None = None, at: Anchor | None = None, cone_limit: float = float("inf"),
        cone_axis: Vector = (0.0, 0.0, 1.0),
    ) -> int:
        """Add a ball joint."""

    def add_joint_cylindrical(
        self, parent: int, child: int, parent_xform: Transform | None = None,
        child_xform: Transform | None = None, axis: Vector = (0.0, 0.0, 1.0),
        limit_lower: Vector | float = float("-inf"), limit_upper: Vector | float = float("inf"),
        damping: Vector | float = 0.0, friction: Vector | float = 0.0, limit_restitution: Vector | float = 0.0,
        label: str | None = None, solver: str | None = None, at: Anchor | None = None,
    ) -> int:
        """Add a cylindrical joint."""

    def add_joint_d6(
        self, parent: int, child: int, parent_xform: Transform | None = None,
        child_xform: Transform | None = None, linear_axes: Sequence[Vector] = (),
        angular_axes: Sequence[Vector] = (), limit_lower: Vector | float = float("-inf"),
        limit_upper: Vector | float = float("inf"), damping: Vector | float = 0.0, friction: Vector | float = 0.0,
        armature: Vector | float = 0.0, limit_restitution: Vector | float = 0.0, label: str | None = None,
        solver: str | None = None, at: Anchor | None = None,
    ) -> int:
        """Add a joint with translations, and then successive rotations. Each rotation also rotates the next axis."""

    def add_joint_distance(
        self, parent: int, child: int, parent_xform: Transform | None = None,
        child_xform: Transform | None = None, min_distance: float = 0.0, max_distance: float = float("inf"),
        damping: float = 0.0, label: str | None = None, solver: str | None = None, at_a: Vector | None = None,
        at_b: Vector | None = None,
    ) -> int:
        """Add a distance joint between the origins of both joint frames: a rope, a rod, or a segment of a tendon."""

    def add_joint_fixed(
        self, parent: int, child: int, parent_xform: Transform | None = None,
        child_xform: Transform | None = None, label: str | None = None, solver: str | None = None,
        at: Anchor | None = None,
    ) -> int:
        """Add a fixed joint."""

    def add_joint_force(
        self, joint: int, limit: float | tuple[float, float] | None = None, axis: int = 0,
        label: str | None = None, delay: float = 0.0, max_delay: float | None = None,
    ) -> int:
        """Add a torque or force on a joint coordinate. ``sim.control[label]`` is the torque or force (N m or N)."""

    def add_joint_free(
        self, parent: int, child: int, parent_xform: Transform | None = None,
        child_xform: Transform | None = None, damping: Vector | float = 0.0, friction: Vector | float = 0.0,
        armature: Vector | float = 0.0, label: str | None = None, solver: str | None = None,
        at: Anchor | None = None,
    ) -> int:
        """Add a free joint."""

    def add_joint_planar(
        self, parent: int, child: int, parent_xform: Transform | None = None,
        child_xform: Transform | None = None, axis: Vector = (0.0, 0.0, 1.0),
        limit_lower: Vector | float = float("-inf"), limit_upper: Vector | float = float("inf"),
        damping: Vector | float = 0.0, friction: Vector | float = 0.0, limit_restitution: Vector | float = 0.0,
        label: str | None = None, solver: str | None = None, at: Anchor | None = None,
    ) -> int:
        """Add a planar joint."""

    def add_joint_planar_pin(
        self, parent: int, child: int, parent_xform: Transform | None = None,
        child_xform: Transform | None = None, axis: Vector = (0.0, 0.0, 1.0), limit_lower: float = float("-inf"),
        limit_upper: float = float("inf"), damping: float = 0.0, friction: float = 0.0, armature: float = 0.0,
        limit_restitution: float = 0.0, label: str | None = None, solver: str | None = None,
        at: Anchor | None = None,
    ) -> int:
        """Add a planar pin, to close a loop of links that move in the plane normal to ``axis``."""

    def add_joint_prismatic(
        self, parent: int, child: int, parent_xform: Transform | None = None,
        child_xform: Transform | None = None, axis: Vector = (0.0, 0.0, 1.0), limit_lower: float = float("-inf"),
        limit_upper: float = float("inf"), damping: float = 0.0, friction: float = 0.0, armature: float = 0.0,
        limit_restitution: float = 0.0, label: str | None = None, solver: str | None = None,
        at: Anchor | None = None,
    ) -> int:
        """Add a prismatic joint."""

    def add_joint_revolute(
        self, parent: int, child: int, parent_xform: Transform | None = None,
        child_xform: Transform | None = None, axis: Vector = (0.0, 0.0, 1.0), limit_lower: float = float("-inf"),
        limit_upper: float = float("inf"), damping: float = 0.0, friction: float = 0.0, armature: float = 0.0,
        limit_restitution: float = 0.0, label: str | None = None, solver: str | None = None,
        at: Anchor | None = None,
    ) -> int:
        """Add a revolute joint."""

    def add_joint_universal(
        self, parent: int, child: int, parent_xform: Transform | None = None,
        child_xform: Transform | None = None, axis: Vector = (1.0, 0.0, 0.0), axis2: Vector = (0.0, 1.0, 0.0),
        limit_lower: Vector | float = float("-inf"), limit_upper: Vector | float = float("inf"),
        damping: Vector | float = 0.0, friction: Vector | float = 0.0, armature: Vector | float = 0.0,
        limit_restitution: Vector | float = 0.0, label: str | None = None, solver: str | None = None,
        at: Anchor | None = None,
    ) -> int:
        """Add a universal joint."""

    def add_joint_wrapped_rope(
        self, parent: int, child: int, around: Wrap, point_a: Vector | None = None, point_b: Vector | None = None,
        max_length: float = float("inf"), damping: float = 0.0, label: str | None = None,
        solver: str | None = None, at_a: Vector | None = None, at_b: Vector | None = None,
    ) -> int:
        """Add a rope from a point on ``parent`` over a sphere or cylinder to a point on ``child``, without friction."""

    def add_latch(
        self, parent: int, child: int, parent_xform: Transform | None = None,
        child_xform: Transform | None = None, attached: bool = False, label: str | None = None,
        solver: str | None = None, at: Anchor | None = None, break_force: float = float("inf"),
        break_torque: float = float("inf"), rotation: bool = True,
    ) -> int:
        """Add a latch: a weld between two bodies that you can attach and detach while the simulation runs."""

    def add_light(
        self, kind: str = "directional", body: int = -1, position: Vector = (0.0, 0.0, 0.0),
        direction: Vector = (0.0, 0.0, -1.0), color: Any = (1.0, 1.0, 1.0), intensity: float = 1.0,
        attenuation: Vector = (1.0, 0.0, 0.0), cutoff: float = 0.7853981633974483, exponent: float = 0.0,
        shadow: bool = True, label: str | None = None,
    ) -> int:
        """Add a light that moves with a body."""

    def add_linear_coupling(
        self, terms: Sequence[tuple[int, float] | tuple[int, int, float]], offset: float | None = None,
        label: str | None = None,
    ) -> int:
        """Lock a weighted sum of joint coordinates, ``sum of factor * q = offset``, like an ideal gear train."""

    def add_mimic(
        self, joint: int, leader: int, multiplier: float = 1.0, offset: float = 0.0, axis: int = 0,
        leader_axis: int = 0, label: str | None = None, curve: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> int:
        """Make a joint follow a leader by ``q_joint = multiplier * q_leader + offset`` (URDF mimic)."""

    def add_model(
        self, source: Any, parent: int | str | None = None, xform: Transform | None = None,
        label_prefix: str = "", **arguments: Any,
    ) -> ImportReport:
        """Add a model from an MJCF, URDF, SDF or USD file."""

    def add_motion(self, joint: int, axis: int = 0, position: float = 0.0, label: str | None = None) -> int:
        """Add a prescribed motion: a joint coordinate follows a path x(t), with unlimited force."""

    def add_muscle(
        self, joint: int, peak_force: float, length_range: tuple[float, float], gear: float = 1.0,
        operating_range: tuple[float, float] = (0.75, 1.05), timeconst: tuple[float, float] = (0.01, 0.04),
        tausmooth: float = 0.0, lmin: float = 0.5, lmax: float = 1.6, vmax: float = 1.5, fpmax: float = 1.3,
        fvmax: float = 1.2, activation: float = 0.0, axis: int = 0, label: str | None = None,
    ) -> int:
        """Add a muscle on a joint coordinate or a tendon, as in MuJoCo."""

    def add_pose(
        self, label: str, joints: Mapping[str, Vector | float | Transform] | None = None,
        bodies: Mapping[str, Transform] | None = None, commands: Mapping[str, float] | None = None,
        activations: Mapping[str, float] | None = None,
    ) -> None:
        """Add a named posture for ``sim.reset(pose=label)``."""

    def add_ray_sensor(
        self, site: int, rays: Any = (1.0, 0.0, 0.0), max_range: float = 100.0,
        groups: Sequence[str] | None = None, own_body: bool = False, label: str | None = None,
    ) -> int:
        """Add a distance sensor with rays from a site: a rangefinder, a scan line, a lidar or a height grid."""

    def add_servo(
        self, joint: int, mode: str = "position", stiffness: float = 0.0, damping: float = 0.0,
        effort_limit: float = float("inf"), target: float = 0.0, axis: int = 0, label: str | None = None,
        command_range: tuple[float, float] | None = None,
    ) -> int:
        """Add a servo on a joint coordinate. ``sim.control[label]`` is the target of the servo."""

    def add_shape(
        self, kind: str, body: int, params: dict[str, Any], xform: Transform | None = None,
        material: Material | None = None, label: str | None = None, group: int | str = 1, mask: int = 4294967295,
        density: float | None = None, color: Any = None,
    ) -> int:
        """Add a shape of a registered type. Prefer ``add_shape_<kind>``, which checks ``params``."""

    def add_shape_barrel(
        self, body: int, radius: float, arc_radius: float, half_length: float, xform: Transform | None = None,
        material: Material | None = None, label: str | None = None, group: int | str = 1, mask: int = 4294967295,
        density: float | None = None, color: Any = None,
    ) -> int:
        """Add a barrel about the origin with axis z: a roller whose profile is an arc of radius ``arc_radius``."""

    def add_shape_box(
        self, body: int, half_extents: Vector, xform: Transform | None = None, material: Material | None = None,
        label: str | None = None, group: int | str = 1, mask: int = 4294967295, density: float | None = None,
        color: Any = None,
    ) -> int:
        """Add a box about the shape frame's origin with edges along its axes."""

    def add_shape_capsule(
        self, body: int, radius: float, half_length: float, xform: Transform | None = None,
        material: Material | None = None, label: str | None = None, group: int | str = 1, mask: int = 4294967295,
        density: float | None = None, color: Any = None,
    ) -> int:
        """Add a capsule: the points within ``radius`` of a segment along z."""

    def add_shape_cone(
        self, body: int, radius: float, half_length: float, xform: Transform | None = None,
        material: Material | None = None, label: str | None = None, group: int | str = 1, mask: int = 4294967295,
        density: float | None = None, color: Any = None,
    ) -> int:
        """Add a cone: base at z = -half_length, apex at z = +half_length of the shape frame."""

    def add_shape_cylinder(
        self, body: int, radius: float, half_length: float, xform: Transform | None = None,
        material: Material | None = None, label: str | None = None, group: int | str = 1, mask: int = 4294967295,
        density: float | None = None, color: Any = None,
    ) -> int:
        """Add a cylinder with axis z about the shape frame's origin."""

    def add_shape_ellipsoid(
        self, body: int, semi_axes: Vector, xform: Transform | None = None, material: Material | None = None,
        label: str | None = None, group: int | str = 1, mask: int = 4294967295, density: float | None = None,
        color: Any = None,
    ) -> int:
        """Add an ellipsoid about the shape frame's origin."""

    def add_shape_height_field(
        self, body: int, heights: Any, spacing: Vector = (1.0, 1.0), base: float | None = None,
        xform: Transform | None = None, material: Material | None = None, label: str | None = None,
        group: int | str = 1, mask: int = 4294967295, color: Any = None,
    ) -> int:
        """Add terrain given by heights on a grid, centered on the shape frame's origin."""

    def add_shape_hull(
        self, body: int, vertices: Any, xform: Transform | None = None, material: Material | None = None,
        label: str | None = None, group: int | str = 1, mask: int = 4294967295, density: float | None = None,
        max_vertices: int = 256, color: Any = None,
    ) -> int:
        """Add the convex hull of points."""

    def add_shape_mesh(
        self, body: int, mesh: Any, scale: float | Vector = 1.0, xform: Transform | None = None,
        material: Material | None = None, label: str | None = None, group: int | str = 1, mask: int = 4294967295,
        density: float | None = None, max_vertices: int = 256, color: Any = None, convex: str = "hull",
        max_parts: int = 32,
    ) -> int:
        """Add the convex hull of a mesh, or hulls of its convex parts."""

    def add_shape_plane(
        self, body: int = -1, xform: Transform | None = None, material: Material | None = None,
        label: str | None = None, group: int | str = 1, mask: int = 4294967295,
    ) -> int:
        """Add a half space: everything below z = 0 of the shape frame is solid."""

    def add_shape_sphere(
        self, body: int, radius: float, xform: Transform | None = None, material: Material | None = None,
        label: str | None = None, group: int | str = 1, mask: int = 4294967295, density: float | None = None,
        color: Any = None,
    ) -> int:
        """Add a sphere about the shape frame's origin."""

    def add_shape_superellipsoid(
        self, body: int, semi_axes: Vector, exponents: Vector, xform: Transform | None = None,
        material: Material | None = None, label: str | None = None, group: int | str = 1, mask: int = 4294967295,
        density: float | None = None, color: Any = None,
    ) -> int:
        """Add a superellipsoid about the shape frame's origin."""

    def add_shape_triangle_mesh(
        self, body: int, mesh: Any, scale: float | Vector = 1.0, xform: Transform | None = None,
        material: Material | Sequence[Material] | None = None, label: str | None = None, group: int | str = 1,
        mask: int = 4294967295, color: Any = None, material_index: Any = None,
    ) -> int:
        """Add a mesh that collides as triangles, for the world or a kinematic body."""

    def add_shape_wheel(
        self, body: int, radius: float, edge_radius: float = 0.0, xform: Transform | None = None,
        material: Material | None = None, label: str | None = None, group: int | str = 1, mask: int = 4294967295,
        density: float | None = None, color: Any = None,
    ) -> int:
        """Add a wheel: a disk with a round edge and axle z, which has one contact point with a convex shape."""

    def add_site(
        self, body: int, xform: Transform | None = None, label: str | None = None, at: Anchor | None = None,
    ) -> int:
        """Add a site, a named frame on a body, for a sensor, a gripper or a sole."""

    def add_spatial_tendon(
        self, path: Sequence[tuple[int, Vector] | Wrap | Pulley], limit_lower: float = float("-inf"),
        limit_upper: float = float("inf"), damping: float = 0.0, friction: float = 0.0, armature: float = 0.0,
        limit_restitution: float = 0.0, label: str | None = None, solver: str | None = None,
    ) -> int:
        """Add a tendon along a path of points, spheres and cylinders, without friction (MuJoCo's spatial tendon)."""

    def add_spring(
        self, body_a: int, body_b: int, point_a: Vector | None = None, point_b: Vector | None = None,
        stiffness: float = 0.0, damping: Any = 0.0, rest_length: float | None = None, label: str | None = None, *,
        preload: float | None = None, table: Any = None, bump: BumpStop | None = None,
        droop: BumpStop | None = None, at_a: Vector | None = None, at_b: Vector | None = None,
    ) -> int:
        """Add a spring-damper between two points."""

    def add_tendon(
        self, terms: Sequence[tuple[int, float] | tuple[int, int, float]], limit_lower: float = float("-inf"),
        limit_upper: float = float("inf"), damping: float = 0.0, friction: float = 0.0, armature: float = 0.0,
        limit_restitution: float = 0.0, label: str | None = None, solver: str | None = None,
    ) -> int:
        """Add a tendon: a weighted sum of joint coordinates, as a coordinate for actuators, limits and friction."""

    def add_terrain(
        self, source: Any, cell: float | Vector | None = None, size: float | Vector | None = None,
        height: float = 1.0, hole: float | None = None, body: int = -1, xform: Transform | None = None,
        material: Material | Sequence[Material] | None = None, material_index: Any = None,
        label: str | None = None, group: int | str = 1, mask: int = 4294967295, color: Any = None,
    ) -> int:
        """Add terrain from a file or an array of heights, centered on the shape frame's origin."""

    def add_torque(self, body: int, torque: Vector, frame: str = "world", label: str | None = None) -> int:
        """Apply a torque to a body. ``sim.control[label]`` scales the torque (initially 1)."""

    def add_torque_motor(self, joint: int, torque: float, axis: int = 0, label: str | None = None) -> int:
        """Add an ideal motor without inertia and lag. The torque does not depend on the speed."""

    def add_torsion_spring(
        self, joint: int, stiffness: float = 0.0, damping: Any = 0.0, rest_angle: float | None = None,
        axis: int = 0, label: str | None = None, *, preload: float | None = None, table: Any = None,
        bump: BumpStop | None = None, droop: BumpStop | None = None,
    ) -> int:
        """Add a spring-damper on a joint coordinate: a torsion spring on a rotation, a coil spring on a slide."""

    def add_tracking_servo(
        self, joint: int, stiffness: float, damping: float, limit: float | tuple[float, float] | None = None,
        target: float = 0.0, axis: int = 0, label: str | None = None, delay: float = 0.0,
        max_delay: float | None = None,
    ) -> int:
        """Add a servo on a joint coordinate, with target position, target velocity and feed-forward effort."""

    def add_visual(
        self, body: int, kind: str, *sizes: Any, xform: Transform | None = None, color: Any = None,
        label: str | None = None, alpha: float | None = None, roughness: float | None = None,
        metallic: float | None = None, texture: Any = None, **params: Any,
    ) -> int:
        """Add a visual to a body. The viewer draws the visual instead of the body's shapes."""

    def exclude_collision_pair(self, shape_a: int, shape_b: int) -> int:
        """Let two shapes pass through each other, regardless of their groups."""

    def set_command_map(
        self, command: str, factor: float = 1.0, offset: float = 0.0, lower: float = float("-inf"),
        upper: float = float("inf"), initial: float | None = None, time_constant: float = 0.0, *,
        integrate: bool = False, activation_range: tuple[float, float] | None = None,
        activation: float | None = None,
    ) -> None:
        """Set the units, the range, a lag or an integrator of a command."""

    def set_group_collision(self, group_a: str, group_b: str | None, collide: bool) -> None:
        """Set whether shapes of two named groups collide. By default all groups collide."""

def builder_method(function: F) -> F:
    """Attach a function to ModelBuilder as a method."""
