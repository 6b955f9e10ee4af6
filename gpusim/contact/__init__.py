"""Contacts between shapes: geometry, normal, damping and friction laws, surface tracking, materials."""

from gpusim.contact.law import ContactLaw
from gpusim.contact.material import Material

__all__ = ["ContactLaw", "Material"]
