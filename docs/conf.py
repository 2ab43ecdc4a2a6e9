"""Sphinx configuration."""

import os
import re
import sys
from pathlib import Path

from plumdp import __version__

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "plumdp"
author = "The plumdp developers"
release = __version__
extensions = ["myst_nb", "sphinx_design", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
extensions += ["mathml", "number_columns", "commands", "gallery"]  # in the folder _extensions
exclude_patterns = ["_build", "**/cells"]
smartquotes = False  # texts of commands are typed as they stand
html_theme = "furo"
html_title = "plumdp"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3  # so that pages can link to sections of others
nb_execution_mode = "force"  # pages of the gallery; examples on other pages are run by the tests
nb_execution_raise_on_error = True
nb_execution_timeout = 1800
nb_merge_streams = True
nb_number_source_lines = False
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"]]
)  # so that cells find plumdp
autodoc_member_order = "bysource"
ARRAY = re.compile(r"[\w.~]*_Buffer \|.*?complex \| bytes \| str\]")  # what NumPy means by ArrayLike


def shorten(app, kind, name, thing, options, signature, returned):
    """Return a signature that says ArrayLike, and no place in plumdp where a type is defined."""
    short = [text and re.sub(r"~[\w.]*\.(?=\w)", "", ARRAY.sub("ArrayLike", text)) for text in (signature, returned)]
    return tuple(short)


def setup(app):
    app.connect("autodoc-process-signature", shorten)
