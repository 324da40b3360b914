"""The page of iqrl explain."""
