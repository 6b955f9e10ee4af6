"""Name spaces and poses in SDF files: worlds, nested models, frames, and included models."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gpusim.importers.mesh_search import Search
from gpusim.importers.report import ImportReport
from gpusim.importers.sdf_parts.sdf_xml import Node, read_sdf
from gpusim.transform import Transform

POSED_TAGS = ("link", "frame", "joint")


@dataclass(eq=False)
class Scope:
    """Name space of a model or of the world, with named elements and nested models.

    Attributes:
        node: <model> or <world>, or <sdf> if the file has no <world>.
        name: name of the model.
        parent: enclosing scope, or None for the outermost scope.
        folder: folder of the model's file.
        version: version of SDF in the model's file.
        pose_node: <pose> of the model, or None.
        placement_frame: ``placement_frame`` of the model, or empty for the model's frame.
        static: True if the model is fixed to the world.
        models: model name -> nested model.
        base: pose of the file's world frame in the world frame of the gpusim model.
        needs_ground: True if the file includes Gazebo's ground plane, and the model of the plane is not on disk.
    """

    node: Node
    name: str
    parent: Scope | None
    folder: Path
    version: tuple[int, ...]
    pose_node: Node | None = None
    placement_frame: str = ""
    static: bool = False
    models: dict[str, Scope] = field(default_factory=dict)
    base: Transform = field(default_factory=Transform)
    needs_ground: bool = False
    _poses: dict[str, Transform | None] = field(default_factory=dict)

    @property
    def is_model(self) -> bool:
        """Return True for a model and False for the world."""
        return self.parent is not None

    def all_models(self) -> list[Scope]:
        """Return this scope and all nested models at any depth."""
        return [self, *(inner for model in self.models.values() for inner in model.all_models())]

    def path(self) -> str:
        """Return the path of the model from the outermost model, such as "a::b"."""
        if self.parent is None:
            return ""
        above = self.parent.path()
        return f"{above}::{self.name}" if above else self.name

    def world_pose(self) -> Transform:
        """Return the pose of the model's frame in the world."""
        return self.base if self.parent is None else self.parent.world_pose() * self.in_parent()

    def in_parent(self) -> Transform:
        """Return the pose of the model's frame in the frame of the enclosing scope."""
        assert self.parent is not None

        def find() -> Transform:
            pose = self.parent.pose_of(self.pose_node) if self.parent else Transform()
            return pose * self.local(self.placement_frame, self.node).inverse() if self.placement_frame else pose

        return self.parent._cached_pose(f"model {self.name}", find, self.node)

    def pose_of(self, node: Node | None, default: str = "") -> Transform:
        """Convert a <pose> to the scope's frame.

        If the <pose> has no relative_to, it is relative to the frame ``default``.
        """
        relative = node.get("relative_to") if node is not None else ""
        pose = Transform() if node is None else node.pose()
        frame = relative or default
        return self.local(frame, node or self.node) * pose if frame else pose

    def local(self, name: str, user: Node) -> Transform:
        """Return the pose of the frame ``name`` in the scope's frame.

        ``name`` is the name of a link, joint, frame or model, or a path such as "a::b".

        Raises:
            ModelError: the frame does not exist, or frames depend on each other in a cycle. The error message names
                ``user``, the element that refers to the frame.
        """
        if name in ("", "__model__"):
            return Transform()
        if name in ("world", "__root__"):
            return self.world_pose().inverse()
        head, _, rest = name.partition("::")
        if head in self.models:
            model = self.models[head]
            return model.in_parent() * model.local(rest, user)
        node = next((child for child in self.node.all(*POSED_TAGS) if child.get("name") == name), None)
        if node is None:
            raise user.error(
                f"{user.title}: no frame {name!r} in {self.title}; give a link, joint, model or frame of it"
            )
        return self._cached_pose(name, lambda: self.pose_of(node.find("pose"), _origin_of(node)), node)

    @property
    def title(self) -> str:
        """Return the name of the model or world for messages."""
        return f"model {self.name!r}" if self.is_model else "the world"

    def _cached_pose(self, name: str, find: Callable[[], Transform], node: Node) -> Transform:
        if name not in self._poses:
            self._poses[name] = None
            self._poses[name] = find()
        pose = self._poses[name]
        if pose is None:
            raise node.error(f"{node.title}: its pose depends on itself; correct a relative_to or attached_to")
        return pose

    def link(self, name: str, depth: int = 0) -> tuple[Scope, str] | None:
        """Return the link that a frame is attached to, as a pair (scope, link name), or None.

        ``name`` is the name of a link, joint, frame or model, or a path such as "a::b".
        """
        head, _, rest = name.partition("::")
        if rest:
            return self.models[head].link(rest, depth) if head in self.models else None
        node = next((child for child in self.node.all(*POSED_TAGS) if child.get("name") == name), None)
        if node is not None:
            if node.tag == "link" or depth > 100:  # stops at circular attachments
                return (self, name) if node.tag == "link" else None
            return self.link(_origin_of(node) or "__model__", depth + 1)
        if head in self.models or name == "__model__":  # a model's frame belongs to its first link
            model = self.models.get(head, self)
            links = [(inner, link) for inner in model.all_models() for link in inner.node.all("link")[:1]]
            canonical = model.node.get("canonical_link")
            if canonical and depth <= 100:
                return model.link(canonical, depth + 1)
            return (links[0][0], links[0][1].get("name")) if links else None
        return None


def _origin_of(node: Node) -> str:
    """Return the name of the default reference frame of an element's pose."""
    return {"joint": node.words("child"), "frame": node.get("attached_to")}.get(node.tag, "")


def read_scopes(root: Node, folder: Path, search: Search, base: Transform, report: ImportReport) -> Scope:
    """Return the scope of an <sdf> element: the first <world>, or all models if the file has no <world>.

    ``base`` is the pose of the file's world frame in the model's world frame.
    """
    worlds = root.all("world")
    for other in worlds[1:]:
        report.add("motion", other.title, "is not the first world", "left out", "put it in its own file")
    node = worlds[0] if worlds else root
    scope = Scope(node, node.get("name"), None, folder, _version(root), base=base)
    _read_models(scope, search, report, depth=0)
    return scope


def _version(root: Node) -> tuple[int, ...]:
    return tuple(int(word) for word in re.findall(r"\d+", root.get("version"))) or (1, 4)


def _read_models(scope: Scope, search: Search, report: ImportReport, depth: int) -> None:
    if depth > 30:
        raise scope.node.error(
            f"{scope.title}: its models include each other more than 30 levels deep; remove the cycle"
        )
    merged: list[Node] = []
    for node in scope.node.all("model", "include"):
        inner = _included(node, scope, search, report) if node.tag == "include" else _model(node, scope)
        if inner is None:
            continue
        if node.get("merge") in ("true", "1") and scope.is_model:
            merged += _merged(inner)
            continue
        if inner.name in scope.models and node.tag == "include":
            _rename(inner, scope, report)
        if inner.name in scope.models:
            raise node.error(f"model {inner.name!r} exists already in {scope.title}; rename one")
        scope.models[inner.name] = inner
        _read_models(inner, search, report, depth + 1)
    if merged:
        scope.node.children += merged
        inner_models = Scope(Node("model", {}, 0, scope.node.source, children=merged), "", scope, scope.folder, (1, 9))
        _read_models(inner_models, search, report, depth + 1)
        for model in inner_models.models.values():
            model.parent = scope
            scope.models[model.name] = model


def _rename(model: Scope, scope: Scope, report: ImportReport) -> None:
    old, number = model.name, 1
    while model.name in scope.models:
        model.name, number = f"{old}_{number}", number + 1
    report.add("info", f"model {old!r}", f"is included again in {scope.title}", f"called {model.name!r}")


def _model(node: Node, scope: Scope) -> Scope:
    placement_frame = node.get("placement_frame")
    static = scope.static or node.flag("static")
    name = node.get("name") or "model"
    return Scope(node, name, scope, scope.folder, scope.version, node.find("pose"), placement_frame, static)


_INCLUDE = {"uri", "name", "pose", "static", "placement_frame", "plugin"}


def _included(node: Node, scope: Scope, search: Search, report: ImportReport) -> Scope | None:
    uri = node.words("uri")
    for other in node.children:
        if other.tag not in _INCLUDE:
            report.add("motion", f"include {uri!r}", f"has <{other.tag}>", "this change of the model is ignored")
    file = model_file(search, uri, scope.folder)
    if file is None:
        _missing(uri, scope, report)
        return None
    root = read_sdf(file)
    model = root.find("model") or root.find("world/model")
    if model is None:
        if root.find("light") is not None:
            report.add("look", f"include {uri!r}", "is a light", "left out")
        else:
            report.add("motion", f"include {uri!r}", "contains no model", "left out")
        return None
    inner = Scope(model, node.words("name") or model.get("name"), scope, file.parent, _version(root))
    inner.pose_node = node.find("pose") or model.find("pose")
    inner.placement_frame = node.words("placement_frame") or model.get("placement_frame")
    inner.static = scope.static or node.flag("static", model.flag("static"))
    return inner


def _missing(uri: str, scope: Scope, report: ImportReport) -> None:
    """Add a finding about an <include> whose model does not exist."""
    name = uri.rstrip("/").rpartition("/")[2].lower()
    if name in ("sun", "sun_fuel"):
        report.add("look", f"include {uri!r}", "is a light", "left out")
    elif name in ("ground_plane", "ground plane"):
        report.add("info", f"include {uri!r}", "is not found", "Gazebo's ground plane used instead")
        scope.needs_ground = True
    else:
        fix = "give the folder of its models with asset_dirs=[...]"
        report.add("motion", f"include {uri!r}", "is not found", "left out", fix)


def model_file(search: Search, uri: str, folder: Path) -> Path | None:
    """Return the SDF file for the URI of a model, or None. If the URI is a folder, :func:`file_in` selects the file."""
    name = uri
    if "://" in uri and not uri.startswith(("model://", "package://", "file://")):
        name = "model://" + re.sub(r"/\d+$", "", uri.rstrip("/")).rpartition("/")[2]  # Fuel: .../models/NAME/VERSION
    found = search.find(name, folder)
    if found is None or found.is_file():
        return found
    return file_in(found)


def file_in(folder: Path) -> Path | None:
    """Return the SDF file of a model folder, or None."""
    config = folder / "model.config"
    if config.is_file():
        named = re.findall(r"<sdf[^>]*>\s*([^<\s]+)\s*</sdf>", config.read_text(encoding="utf-8", errors="replace"))
        for name in reversed(named):
            if os.path.isfile(folder / name):
                return folder / name
    files = sorted(folder.glob("*.sdf"), key=lambda file: file.name != "model.sdf")
    return files[0] if files else None


def _merged(inner: Scope) -> list[Node]:
    """Return the elements that an included model with ``merge="true"`` adds to the enclosing model."""
    frame = f"_merged__{inner.name}__model__"
    pose, source = inner.pose_node, inner.node.source
    children: list[Node] = []
    for node in inner.node.all("link", "frame", "joint", "model", "include", "plugin"):
        attrib, parts = dict(node.attrib), list(node.children)
        old = node.find("pose")
        if node.tag == "frame" and not node.get("attached_to"):
            attrib["attached_to"] = frame
        elif node.tag in ("link", "model", "include") and (old is None or not old.get("relative_to")):
            new = Node("pose", {**(old.attrib if old else {}), "relative_to": frame}, node.line, source)
            new.text = old.text if old else ""
            parts = [part for part in parts if part.tag != "pose"] + [new]
        children.append(Node(node.tag, attrib, node.line, node.source, node.text, parts, inner.folder))
    frame_node = Node("frame", {"name": frame}, inner.node.line, source, children=[pose] if pose is not None else [])
    if inner.placement_frame:
        offset = inner.local(inner.placement_frame, inner.node).inverse()
        numbers = " ".join(map(repr, [*map(float, offset.position), *map(float, offset.rotation)]))
        outer = Node("frame", {"name": frame + "at"}, inner.node.line, source, children=frame_node.children)
        moved = Node("pose", {"relative_to": frame + "at", "rotation_format": "quat_xyzw"}, inner.node.line, source)
        moved.text = numbers
        return [outer, Node("frame", {"name": frame}, inner.node.line, source, children=[moved]), *children]
    return [frame_node, *children]
