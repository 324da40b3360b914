"""Trained agents as files that need no JAX: NumPy source or an ONNX model."""
