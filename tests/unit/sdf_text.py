"""SDF snippets for the importer's tests."""

from __future__ import annotations


def sdf(*elements: str, version: str = "1.9") -> str:
    return f'<sdf version="{version}">\n' + "\n".join(elements) + "\n</sdf>"


def model(*elements: str, name: str = "bot", more: str = "") -> str:
    return f'<model name="{name}"{more}>\n' + "\n".join(elements) + "\n</model>"


def inertial(mass: float = 1.0, moments: tuple[float, float, float] = (1.0, 1.0, 1.0), pose: str = "") -> str:
    values = "".join(f"<{name}>{value!r}</{name}>" for name, value in zip(("ixx", "iyy", "izz"), moments, strict=True))
    place = f"<pose>{pose}</pose>" if pose else ""
    return f"<inertial>{place}<mass>{mass!r}</mass><inertia>{values}</inertia></inertial>"


def link(name: str, content: str = "", pose: str = "", relative: str = "") -> str:
    to = f' relative_to="{relative}"' if relative else ""
    place = f"<pose{to}>{pose}</pose>" if pose or relative else ""
    return f'<link name="{name}">{place}{content or inertial()}</link>'


def joint(name: str, kind: str, parent: str, child: str, content: str = "<axis><xyz>0 0 1</xyz></axis>") -> str:
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="{kind}">{ends}{content}</joint>'


def axis(xyz: str = "0 0 1", inside: str = "", tag: str = "axis") -> str:
    return f"<{tag}><xyz>{xyz}</xyz>{inside}</{tag}>"


def collision(geometry: str, surface: str = "", pose: str = "", name: str = "c") -> str:
    place = f"<pose>{pose}</pose>" if pose else ""
    skin = f"<surface>{surface}</surface>" if surface else ""
    return f'<collision name="{name}">{place}<geometry>{geometry}</geometry>{skin}</collision>'


BOX = "<box><size>1 1 1</size></box>"
