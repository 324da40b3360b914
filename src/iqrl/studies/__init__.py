"""Studies: many runs that together answer a question, described as data and run by executors."""
