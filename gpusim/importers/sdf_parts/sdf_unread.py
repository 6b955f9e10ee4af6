"""Findings about elements of SDF that the importer does not read."""

from __future__ import annotations

from collections import Counter

from gpusim.importers.report import ImportReport
from gpusim.importers.sdf_parts.sdf_frames import Scope
from gpusim.importers.sdf_parts.sdf_xml import Node

ACTING_PLUGINS = (
    *("added-mass", "addedmass", "breakable", "buoyancy", "buoyancy-engine", "hydrodynamics", "lift-drag", "liftdrag"),
    *("lift_drag", "multicopter", "motor-model", "motor_model", "thruster", "track-controller", "wheel-slip", "wind"),
)
"""Words in plugin names. Plugins with these names apply forces to bodies even without commands."""

_READ = {
    "sdf": {"world", "model", "light", "actor"},
    "world": {"model", "include", "joint", "frame", "gravity", "light", "plugin", "actor", "gui", "scene", "physics"},
    "model": {
        *("link", "joint", "model", "include", "frame", "pose", "static", "self_collide", "plugin", "gripper"),
        *("allow_auto_disable", "enable_wind"),
    },
    "link": {
        *("pose", "inertial", "collision", "visual", "sensor", "gravity", "self_collide", "kinematic", "light"),
        *("velocity_decay", "enable_wind", "must_be_base_link", "plugin", "projector", "battery"),
        *("audio_sink", "audio_source", "particle_emitter"),
    },
    "joint": {
        *("parent", "child", "pose", "axis", "axis2", "physics", "sensor", "thread_pitch", "screw_thread_pitch"),
        *("gearbox_ratio", "gearbox_reference_body"),
    },
    "axis": {"xyz", "limit", "dynamics", "mimic", "use_parent_model_frame", "initial_position"},
}


def report_unread(root: Node, world: Scope, report: ImportReport) -> None:
    """Add findings about plugins, actors, damping and other elements, and count the unknown elements."""
    scopes = world.all_models()
    nodes = [root] if world.node is root else [root, world.node]
    nodes += [scope.node for scope in scopes if scope.is_model]
    ignored: Counter[str] = Counter()
    for node in nodes:
        _count(node, ignored)
        for owner in (node, *node.all("include")):
            for plugin in owner.all("plugin"):
                _plugin(plugin, report)
        for tag in ("actor", "road", "projector"):
            for found in node.all(tag):
                report.add("look", found.title, f"is {'an' if tag == 'actor' else 'a'} {tag}", "left out")
        for found in node.all("population"):
            report.add("motion", found.title, "adds copies of a model", "left out", "write the copies as models")
    for name in ("wind", "atmosphere"):
        if world.node.find(name) is not None:
            moving = name == "wind" and any(map(abs, world.node.vector("wind/linear_velocity", (0.0, 0.0, 0.0))))
            report.add("motion" if moving else "info", f"<{name}>", "is not read", "there is no air")
    if world.node.find("state") is not None:
        report.add("info", "<state>", "contains saved poses", "models start at the poses of their <model>")
    step = world.node.find("physics/max_step_size")
    if step is not None:
        text = f"asks for a step of {step.text.strip()} s"
        report.add("info", "<physics>", text, "left out", "give SolverConfig(dt=...)")
    for scope in scopes:
        for link in scope.node.all("link"):
            _link(link, report, ignored)
        for joint in scope.node.all("joint"):
            _count(joint, ignored)
            for axis in joint.all("axis", "axis2"):
                _count(axis, ignored)
            for sensor in joint.all("sensor"):
                fix = "add one with add_force_sensor"
                report.add("info", joint.title, f"sensor of type {sensor.get('type')!r} is not read", "", fix)
    report.ignored = dict(ignored)


def _link(link: Node, report: ImportReport, ignored: Counter[str]) -> None:
    _count(link, ignored)
    for name in ("linear", "angular"):
        value = link.number(f"velocity_decay/{name}", 0.0)
        if value != 0.0:
            report.add("motion", link.title, f"has <velocity_decay> {name} {value:g}", "it has no damping")
    for plugin in link.all("plugin"):
        _plugin(plugin, report)
    for tag in ("projector", "particle_emitter"):
        for found in link.all(tag):
            report.add("look", found.title, f"is on {link.title}", "left out")


def _plugin(plugin: Node, report: ImportReport) -> None:
    name = plugin.get("filename") or plugin.get("name")
    acts = any(part in name.lower() or part in plugin.get("name").lower() for part in ACTING_PLUGINS)
    fix = "apply its forces with actuators or a diagram" if acts else ""
    report.add("motion" if acts else "info", f"plugin {name!r}", "is not read", "its code does not run", fix)


def _count(node: Node, ignored: Counter[str]) -> None:
    known = _READ.get("axis" if node.tag == "axis2" else node.tag, set())
    for child in node.children:
        handled = child.tag in ("road", "population", "projector", "wind", "atmosphere", "state")
        if child.tag not in known and not handled:
            ignored[child.tag] += 1
