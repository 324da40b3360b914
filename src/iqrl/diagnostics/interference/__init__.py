"""Measurements of interference while a run is trained."""
