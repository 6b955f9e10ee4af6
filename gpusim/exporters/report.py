"""Report of an export: model features that the format cannot represent, and names in the file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from gpusim.description.specs import VisualSpec
from gpusim.errors import ModelError
from gpusim.importers.report import Finding, Findings


@dataclass
class ExportReport(Findings):
    """Result of an export.

    Attributes:
        format: name of the format, "MJCF" or "USD".
        file: path of the written file, or "" for text.
        counts: element type, such as "bodies" -> number of elements.
        joints: joint label -> names of the joint's coordinates in the file (MJCF), or path of the joint's prim (USD).
        findings: features of the model that the file changes or lacks, in the order of the export. See
            :class:`gpusim.importers.Finding` for the severities.
    """

    format: str
    file: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    joints: dict[str, list[str]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def raise_if_not_exact(self) -> None:
        """Raise an error for the first finding of severity "motion".

        Raises:
            ModelError: a finding has severity "motion".
        """
        if loss := self.first_loss():
            raise ModelError(f"{self.format}: {loss}; leave it out of the model, or accept the report")

    def json(self) -> str:
        """Return the report as JSON text."""
        return json.dumps(asdict(self) | {"exact": self.exact}, indent=2)

    def summary(self) -> str:
        """Return a short text: the number of elements of each type, and all warnings."""
        counts = ", ".join(f"{number} {name}" for name, number in self.counts.items() if number)
        lines = [f"{self.file or self.format}: {counts}"]
        return "\n".join(lines + [f"  warning: {text}" for text in self.warnings])

    def add_look(self, visual: VisualSpec) -> None:
        """Add findings about a visual's texture, vertex colors and finish, which exports omit."""
        pieces = visual.params.get("pieces", ())
        looks = [visual.look, *(visual.look.over(piece.look) for piece in pieces)]
        if any(look.texture is not None for look in looks) or any(piece.colors is not None for piece in pieces):
            self.add("look", visual.element, "has a texture or vertex colors", "it has one color in the file")
        if any(look.roughness is not None or look.metallic is not None for look in looks):
            self.add("look", visual.element, "has a finish", "the file has only its color")


def check_model_name(element: str, name: str) -> None:
    """Check the name that a model gets in the exported file.

    Raises:
        ModelError: the name is not a string, is empty, or has control characters.
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ModelError(f"{element}: name = {name!r} is not a name; give a text such as 'arm'")
