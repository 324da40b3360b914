"""Analyses of a finished run: interference among contexts, cost."""
