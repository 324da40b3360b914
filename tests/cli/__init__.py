"""A package, so that files here may have the names of files in other folders of tests."""
