"""What is shown of studies: tables, figures, the page."""
