"""Sphinx configuration."""

from plumdp import __version__

project = "plumdp"
author = "The plumdp developers"
release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # so that pages can link to sections of others
nb_execution_mode = "off"  # the examples are run by the tests
autodoc_member_order = "bysource"
