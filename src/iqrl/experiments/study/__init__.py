"""A study is data: which runs make which table."""
