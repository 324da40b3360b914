"""Drivers, checkpoints and the run store."""
