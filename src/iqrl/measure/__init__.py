"""What happens in a run while it is trained: interference and probes."""
