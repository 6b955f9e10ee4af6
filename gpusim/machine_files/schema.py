"""JSON schema of machine files, made from the signatures of the builder's methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from gpusim.description.config import SolverConfig
from gpusim.machine_files.loader import methods
from gpusim.machine_files.values import POSE_KEYS, RECORDS, names_of, records_of, space_of
from gpusim.scene import Camera, Plot, argument_docs

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_EXPRESSION: dict[str, Any] = {"type": "string", "pattern": "^="}
_NUMBER: dict[str, Any] = {"anyOf": [{"type": "number"}, {"$ref": "#/$defs/expression"}]}
_LIST: dict[str, Any] = {"anyOf": [{"type": "array"}, {"$ref": "#/$defs/expression"}]}
_CALLS: dict[str, Any] = {"type": "array", "items": {"$ref": "#/$defs/entry"}}
_TABLES: dict[str, Any] = {"type": "object", "additionalProperties": _LIST}


def machine_schema() -> dict[str, Any]:
    """Return the JSON schema of machine files. Editors use the schema to complete and check names."""
    calls = {key: _call(function, first) for key, (function, first) in methods().items()}
    control = {
        "as": {"type": "string", "description": "Name of the result, for expressions."},
        "for": {"description": "{name: count}, {name: [values], ...} or a list of mappings."},
        "if": {"description": "Make the call only if this expression is true."},
        "add": _CALLS,
        "values": {"type": "object"},
    }
    entry = {
        "type": "object",
        "properties": {**control, **calls},
        "patternProperties": {r"^[A-Za-z_][\w.\[\]]*\.[a-z_]+$": {"type": ["object", "null"]}},
        "additionalProperties": False,
    }
    return {
        "$schema": DIALECT,
        "title": "gpusim machine file",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "description": {"type": "string"},
            "gravity": _LIST,
            "values": {"type": "object", "description": "Named values, in order. '= 2 * mass' is an expression."},
            "models": {"type": "array", "items": {"$ref": "#/$defs/model"}},
            "add": _CALLS,
            "diagrams": {"type": "array", "items": {"type": ["string", "object"]}},
            "operator_commands": {"type": "array", "items": {"type": "string"}},
            "commands": {**_TABLES, "description": "Command: list of [time, value]."},
            "paths": {**_TABLES, "description": "Motion: list of [time, position]."},
            "config": _call(SolverConfig, 0),
            "duration": {**_NUMBER, "description": "Length of a run, s."},
            "camera": _call(Camera, 0),
            "plots": {"type": "array", "items": _call(Plot, 0)},
        },
        "additionalProperties": False,
        "$defs": {
            "expression": _EXPRESSION,
            "pose": {
                "anyOf": [
                    {"type": "object", "properties": dict.fromkeys(POSE_KEYS, {}), "additionalProperties": False},
                    _LIST,
                ]
            },
            "model": {
                "type": "object",
                "properties": {
                    "file": {"type": "string"},
                    "label_prefix": {"type": "string"},
                    "parent": {"type": "string"},
                    "xform": {"$ref": "#/$defs/pose"},
                },
                "required": ["file"],
            },
            "entry": entry,
            **{name: _call(function, 0) for name, function in RECORDS.items()},
        },
    }


def _call(function: Callable[..., Any], first: int) -> dict[str, Any]:
    """Return the schema of a function's arguments."""
    docs = argument_docs(inspect.getdoc(function) or "")
    parameters = dict(list(inspect.signature(function).parameters.items())[first:])
    named = {key: p for key, p in parameters.items() if p.kind is not p.VAR_KEYWORD}
    required = [key for key, p in named.items() if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    properties = {}
    for key, parameter in named.items():
        annotation = "list" if parameter.kind is parameter.VAR_POSITIONAL else parameter.annotation
        doc = {"description": " ".join(docs[key].split())} if key in docs else {}
        properties[key] = {**_argument(key, annotation), **doc}
    schema: dict[str, Any] = {"type": "object" if required else ["object", "null"], "properties": properties}
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": len(named) < len(parameters)}


def _argument(name: str, annotation: Any) -> dict[str, Any]:
    """Return the schema of one argument."""
    if space_of(name, annotation) is not None:
        return {"type": ["string", "integer", "array"]}
    names, records = names_of(annotation), records_of(annotation)
    if records:
        choices: list[dict[str, Any]] = [{"$ref": f"#/$defs/{record}"} for record in records]
        choices.append({"type": "object", "properties": {r: {"$ref": f"#/$defs/{r}"} for r in records}})
        return {"anyOf": [*choices, _LIST, {"type": "null"}]}
    if names & {"Transform", "Anchor"}:
        return {"$ref": "#/$defs/pose"}
    if names <= {"float", "int", "None"} and names & {"float", "int"}:
        return _NUMBER if "None" not in names else {"anyOf": [*_NUMBER["anyOf"], {"type": "null"}]}
    if names == {"bool"}:
        return {"type": ["boolean", "string"]}
    if names <= {"str", "None"} and names:
        return {"type": ["string", "null"] if "None" in names else "string"}
    return {}
