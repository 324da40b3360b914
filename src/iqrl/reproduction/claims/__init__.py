"""Every claim of the paper, what was measured of it, and whether it holds: `docs/claims.md`."""
