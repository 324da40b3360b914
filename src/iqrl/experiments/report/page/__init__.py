"""The page of a study: one HTML file that works offline."""
