"""Drivers, the training loop, run directories, evaluation."""
