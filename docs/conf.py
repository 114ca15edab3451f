"""The documentation site: `sphinx-build -W -c docs . build/site`, from the repository's root.

Its source is the repository itself, so that one relative link leads to the same file on a code
host and on the site.
"""

import re
from importlib.metadata import version as version_of
from inspect import isfunction
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.napoleon import GoogleDocstring

import accel_lab
from accel_lab.libraries.authoring.registration import messages, row
from accel_lab.library_modules import LIBRARIES

project = "accel_lab"
author = "the accel_lab authors"
copyright = f"{author}, Apache-2.0"  # noqa: A001 - Sphinx's name for it
release = version = version_of("accel-lab")

root_doc = "docs/index"
include_patterns = ["docs/**", "notebooks/*.ipynb"]
exclude_patterns = ["**/.*", "docs/changelog.d/*"]

extensions = ["myst_nb", "sphinx.ext.autodoc"]
myst_heading_anchors = 3  # as a code host names them
smartquotes = False

# Every notebook is run for its page; a view shows as the table that it also is.
nb_execution_mode = "force"
nb_execution_show_tb = True
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
nb_ipywidgets_js: dict[str, dict[str, str]] = {}

# Docstrings are Markdown's and Google's: `this` is code.
default_role = "code"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"accel_lab {release}"
html_extra_path = ["site/index.html"]
html_static_path = ["site/style.css"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sourcelink = False

DIRECTIVE = re.compile(r"^<!-- (\{[\w-]+\}.*?)-->$", re.MULTILINE | re.DOTALL)
FUNCTIONS = re.compile(r"^<!-- functions of (\w+) -->$", re.MULTILINE)
OTHERS = re.compile(r"^<!-- (functions|messages) of every other library -->$", re.MULTILINE)
HEADING = re.compile(r"^## (\w+)$", re.MULTILINE)


def functions(found: re.Match[str]) -> str:
    """Document every function of a module, under the names that users have for them."""
    module = getattr(accel_lab, found[1])
    lines = [
        f".. autofunction:: accel_lab::{found[1]}.{name}\n"
        for name, value in vars(module).items()
        if isfunction(value)
        and not name.startswith("_")
        and value.__module__.startswith(module.__name__.removesuffix(".library"))
    ]
    return "<!-- {eval-rst}\n" + "".join(lines) + "-->"


def others(page: str) -> str:
    """Give each library that has no section on a page one there, where the page says so."""
    missing = [name for name in LIBRARIES if name not in HEADING.findall(page)]

    def sections(found: re.Match[str]) -> str:
        body = table if found[1] == "messages" else "<!-- functions of {} -->".format
        return "\n\n".join(f"## {name}\n\n{body(name)}" for name in missing)

    return OTHERS.sub(sections, page)


def table(library: str) -> str:
    """Return a row for each message of a library."""
    rows = [row(kind) for kind in messages() if kind.library == library]
    return "\n".join(["| Message | Function | What it does |", "|---|---|---|", *rows])


def uncover(_: Sphinx, __: str, source: list[str]) -> None:
    """Let the directives act that stand in comments, where a code host does not show them."""
    source[0] = DIRECTIVE.sub(r"```\1```", FUNCTIONS.sub(functions, others(source[0])))


def sections(*docstring: Any) -> None:
    """Read `Parameters:` and `Raises:`; napoleon as an extension would halve lines at colons."""
    lines: list[str] = docstring[-1]
    lines[:] = str(GoogleDocstring(lines)).splitlines()


def setup(app: Sphinx) -> None:
    """Read each page through `uncover`, and each docstring through `sections`."""
    app.connect("source-read", uncover)
    app.connect("autodoc-process-docstring", sections)
