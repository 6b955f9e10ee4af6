"""Contacts between shapes: numbers of their algorithm, pressure over a patch; laws and materials."""

from gpusim.model.contact_law import ContactLaw, Tire
from gpusim.model.material import Material

__all__ = ["ContactLaw", "Material", "Tire"]
