"""The paper's printed numbers, and its authors' Atari curves analysed again."""
