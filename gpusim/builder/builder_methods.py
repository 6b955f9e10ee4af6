"""Base class of ModelBuilder. The files of joints, actuators and shapes attach ``add_...`` methods to this class.

Type checkers and editors read ``builder_methods.pyi`` instead, which ``ci/builder_stub.py --write`` generates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gpusim.renamed import checks_old_names

F = TypeVar("F", bound=Callable[..., Any])


class BuilderMethods:
    """Base class for the methods that :func:`builder_method` attaches."""


def builder_method(function: F) -> F:
    """Attach a function to ModelBuilder as a method.

    The files of joints, actuators and shapes define builder methods this way, such as ``add_joint_revolute``.
    """
    checked = checks_old_names(function)
    setattr(BuilderMethods, function.__name__, checked)
    return checked
