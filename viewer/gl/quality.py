"""Quality tiers: how much work goes into a picture."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.errors import unknown_name

_SOFTWARE = ("llvmpipe", "softpipe", "swiftshader", "swr", "software")


@dataclass(frozen=True)
class Quality:
    """A tier.

    Attributes:
        name: "high", "medium" or "software".
        samples: of each point, for smooth edges.
        shadow_size: edge of the shadow map, texels.
        shadow_taps: 4 or 9 reads for each look into it.
        shadow_rings: rings of further looks for wide soft edges; 0 for none.
        shadow_radius: width of those edges, texels.
        shade_spokes: directions in which the shade below bodies is gathered.
        fine_shine: mirrored sky and the full gloss term.
        triangles: about how many a frame may have; round shapes get fewer segments above.
        segments: around a circle, at most.
        smoothed: how many things at most have smooth edges; of more each pixel takes one sample.
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

    def samples_for(self, things: int) -> int:
        """Samples of each pixel in a picture of so many things."""
        return self.samples if things <= self.smoothed else 1


TIERS = {
    tier.name: tier
    for tier in (
        Quality("high", 8, 4096, 9, 3, 10.0, 32, True, 8_000_000, 96, 1_000_000),
        Quality("medium", 4, 2048, 9, 1, 4.0, 20, True, 2_000_000, 48, 1_000_000),
        Quality("software", 4, 1024, 4, 0, 0.0, 14, False, 16_000, 48, 400),
    )
}


def choose_quality(name: str, renderer_name: str) -> Quality:
    """The tier of a name; "auto" takes the one that suits the renderer.

    Raises:
        UnknownNameError: no such tier.
    """
    if name == "auto":
        on_cpu = any(word in renderer_name.lower() for word in _SOFTWARE)
        return TIERS["software" if on_cpu else "high"]
    if name not in TIERS:
        raise unknown_name("quality", name, [*TIERS, "auto"])
    return TIERS[name]
