"""Environments: compiled ones as records of pure functions, and Gymnasium's."""
