"""Where the runs of a study are trained: local processes, or a Ray cluster."""
