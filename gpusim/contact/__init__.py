"""Contacts between shapes: constants of the algorithm, friction of patches, contact laws and materials."""

from gpusim.contact.law import ContactLaw, Tire
from gpusim.contact.material import Material

__all__ = ["ContactLaw", "Material", "Tire"]
