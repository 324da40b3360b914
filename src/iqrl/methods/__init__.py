"""One file per method: its settings, its own parts, how it is composed."""
