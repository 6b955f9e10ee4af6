"""Tests against exact and independent reference solutions."""
