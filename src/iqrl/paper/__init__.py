"""The paper's printed numbers, and what its authors' published Atari curves say about them."""
