"""What can be found out about a run afterwards: interference among contexts, cost."""
