"""Base class of ModelBuilder to which the files of joints, actuators and shapes attach their ``add_...`` methods.

Type checkers and editors read ``builder_methods.pyi`` instead, which ``ci/builder_stub.py --write`` makes from them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class BuilderMethods:
    """Holds the methods that :func:`builder_method` attaches."""


def builder_method(function: F) -> F:
    """Make a function of a joint's, actuator's or shape's own file a method of ModelBuilder.

    So a new joint, actuator or shape touches one file, and users still write ``builder.add_joint_revolute(...)``.
    """
    setattr(BuilderMethods, function.__name__, function)
    return function
