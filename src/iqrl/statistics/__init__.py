"""Curves, intervals and tests; knows nothing of the rest of the library."""
