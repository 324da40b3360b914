"""Results as tables, figures and progress displays."""
