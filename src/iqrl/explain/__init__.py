"""Why a run went as it did: its falls, what moved before them, and what to try."""
