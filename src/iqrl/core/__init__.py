"""What to read beside the paper: Algorithm 1 and its parts, in pure JAX."""
