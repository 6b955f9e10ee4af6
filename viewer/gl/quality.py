"""Quality levels of pictures."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.errors import unknown_name

_SOFTWARE = ("llvmpipe", "softpipe", "swiftshader", "swr", "software")


@dataclass(frozen=True)
class Quality:
    """One quality level.

    Attributes:
        name: "high", "medium" or "software".
        samples: number of samples per pixel, for smooth edges.
        shadow_size: edge length of the shadow map, texels.
        shadow_taps: number of texture reads per shadow lookup, 4 or 9.
        shadow_rings: number of additional rings of shadow lookups, for wide soft shadow edges.
        shadow_radius: width of soft shadow edges, texels.
        shade_spokes: number of sample directions for the soft shade below bodies.
        fine_shine: True if surfaces mirror the sky.
        triangles: approximate maximum number of triangles per frame. In large scenes, round shapes get fewer segments.
        segments: maximum number of segments of a circle.
        smoothed: maximum number of instances for which edges are smooth. Larger scenes have one sample per pixel.
    """

    name: str
    samples: int
    shadow_size: int
    shadow_taps: int
    shadow_rings: int
    shadow_radius: float
    shade_spokes: int
    fine_shine: bool
    triangles: int
    segments: int
    smoothed: int

    def samples_for(self, objects: int) -> int:
        """Return the number of samples per pixel for a stage with ``objects`` instances."""
        return self.samples if objects <= self.smoothed else 1


TIERS = {
    tier.name: tier
    for tier in (
        Quality("high", 8, 4096, 9, 3, 10.0, 32, True, 8_000_000, 96, 1_000_000),
        Quality("medium", 4, 2048, 9, 1, 4.0, 20, True, 2_000_000, 48, 1_000_000),
        Quality("software", 4, 1024, 4, 0, 0.0, 14, False, 16_000, 48, 400),
    )
}


def choose_quality(name: str, renderer_name: str) -> Quality:
    """Return a quality level by name. "auto" selects "software" for a renderer on the CPU, else "high".

    Raises:
        UnknownNameError: the quality is unknown.
    """
    if name == "auto":
        on_cpu = any(word in renderer_name.lower() for word in _SOFTWARE)
        return TIERS["software" if on_cpu else "high"]
    if name not in TIERS:
        raise unknown_name("quality", name, [*TIERS, "auto"])
    return TIERS[name]
