"""Contacts between shapes: constants of the algorithm, friction of patches, contact laws and materials."""

from gpusim.model.contact_law import ContactLaw, Tire
from gpusim.model.material import Material

__all__ = ["ContactLaw", "Material", "Tire"]
