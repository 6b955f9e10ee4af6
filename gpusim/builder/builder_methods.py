"""Base class of ModelBuilder. Other files attach the methods ``add_...`` to this class.

For type checkers and editors, ``ci/docs/builder_stub.py --write`` generates ``builder_methods.pyi``.
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

    Files of joints, actuators and shapes use this decorator for builder methods, such as ``add_joint_revolute``.
    """
    checked = checks_old_names(function)
    setattr(BuilderMethods, function.__name__, checked)
    return checked
