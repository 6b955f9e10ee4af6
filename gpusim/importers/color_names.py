"""Gazebo's named colors, such as "Gazebo/Orange"."""

from __future__ import annotations

Color = tuple[float, float, float]

_COLORS: dict[str, Color] = {
    "grey": (0.7, 0.7, 0.7),
    "darkgrey": (0.175, 0.175, 0.175),
    "white": (1.0, 1.0, 1.0),
    "flatblack": (0.1, 0.1, 0.1),
    "black": (0.0, 0.0, 0.0),
    "red": (1.0, 0.0, 0.0),
    "redbright": (0.87, 0.26, 0.07),
    "green": (0.0, 1.0, 0.0),
    "blue": (0.0, 0.0, 1.0),
    "skyblue": (0.13, 0.44, 0.70),
    "yellow": (1.0, 1.0, 0.0),
    "zincyellow": (0.9725, 0.9529, 0.2078),
    "darkyellow": (0.7, 0.7, 0.0),
    "purple": (1.0, 0.0, 1.0),
    "turquoise": (0.0, 1.0, 1.0),
    "orange": (1.0, 0.5088, 0.0468),
    "indigo": (0.33, 0.0, 0.5),
    "gold": (0.8, 0.6487, 0.1209),
    "silver": (0.75, 0.75, 0.75),
    "bronze": (0.71, 0.43, 0.18),
    "chrome": (0.65, 0.65, 0.65),
    "wood": (0.62, 0.46, 0.30),
    "lightwood": (0.80, 0.66, 0.47),
    "road": (0.25, 0.25, 0.25),
    "asphalt": (0.25, 0.25, 0.25),
    "grass": (0.30, 0.45, 0.18),
    "bricks": (0.55, 0.30, 0.22),
}


def named_color(name: str) -> Color | None:
    """Return Gazebo's color (sRGB, 0 to 1) for a name, or None if the name is unknown."""
    key = name.strip().rpartition("/")[2].replace("_", "").replace(" ", "").lower()
    for ending in ("", "glow", "transparent", "grid"):
        if key.endswith(ending) and (color := _COLORS.get(key.removesuffix(ending))) is not None:
            return color
    return None
