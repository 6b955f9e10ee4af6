"""Contacts between shapes: geometry, normal, damping and friction laws, surface tracking, materials."""
