"""Studies, executors and reports."""
