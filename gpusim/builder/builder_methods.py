"""Base class of ModelBuilder. Other files attach the methods ``add_...`` to this class.

``ci/docs/builder_stub.py --write`` generates ``builder_methods.pyi`` for type checkers and editors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gpusim.renamed import checks_old_names

F = TypeVar("F", bound=Callable[..., Any])


class BuilderMethods:
    """Base class of ModelBuilder, to which :func:`builder_method` attaches methods."""


def builder_method(function: F) -> F:
    """Attach a function to ModelBuilder as a method.

    This decorator marks builder methods in the files of joints, actuators and shapes, such as ``add_joint_revolute``.
    """
    checked = checks_old_names(function)
    setattr(BuilderMethods, function.__name__, checked)
    return checked
