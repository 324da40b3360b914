"""What a run did: interference, probes, cost."""
