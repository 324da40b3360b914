"""Classic control, as in Gymnasium, and probe tasks with known values."""
