"""Groups of connected elements, such as bodies that joints connect (union-find)."""

from __future__ import annotations


class Groups:
    """Elements, by index, in groups. At first, each element is alone."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def root(self, element: int) -> int:
        """Return the element that represents the group of ``element``."""
        parent = self._parent
        while parent.get(element, element) != element:
            above = parent[element]
            parent[element] = element = parent.get(above, above)
        return element

    def join(self, a: int, b: int) -> bool:
        """Unite the groups of two elements. Return False if they already are in one group."""
        a, b = self.root(a), self.root(b)
        self._parent[b] = a
        return a != b
