"""The documentation as a site: `scripts/docs` builds it."""

import sys
from pathlib import Path

import iqrl

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "IQRL"
author = "the IQRL authors"
copyright = "the IQRL authors, MIT license"
version = release = iqrl.__version__
language = "en"
smartquotes = False  # s' is not s’

extensions = ["myst_parser", "sphinx.ext.autodoc", "notebook_pages", "repository_pages"]
exclude_patterns = ["_build", "_ext"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "separated"
default_role = "code"  # docstrings have `names` in single backticks

html_theme = "furo"
html_title = "IQRL"
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # summaries are fetched, which a browser refuses on files
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}
highlight_language = "text"
pygments_style = "default"  # its comments can be read: a contrast of 4.5
pygments_dark_style = "native"
