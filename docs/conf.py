"""Sphinx configuration. Warnings are errors: ``nox -s docs``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "xcfg"
copyright = "the xcfg authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click", "registered"]
exclude_patterns = ["_build", "examples", "reference/generated/names-*"]
html_theme = "furo"
html_title = "xcfg"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_typehints = "description"
nitpicky = False
