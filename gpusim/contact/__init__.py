"""Contacts between shapes: materials, contact laws, friction of contact patches, and constants."""

from gpusim.contact.law import ContactLaw, Tire
from gpusim.contact.material import Material

__all__ = ["ContactLaw", "Material", "Tire"]
