"""Configures Sphinx for `make site`. docs/_site holds what the project adds to it."""

import hashlib
import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from docs._site import headers, hooks, pages, reference  # noqa: E402

BUILD = ROOT / ".build/site"

project = "meshfeed"
author = "the authors of meshfeed"
copyright = author  # noqa: A001
version = release = (ROOT / "VERSION").read_text().strip()

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["downloads"]
nitpicky = False
smartquotes_action = "D"  # dashes, and no other quotes

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # a section of an API may begin at its own level

# The library is part of the key of the cache, so that a guide runs again after it has changed.
_digest = hashlib.sha256()
for _path in sorted((ROOT / "python/meshfeed").rglob("*.py")) + sorted(
    (ROOT / "python/meshfeed/_lib").glob("*.so")
):
    _digest.update(_path.read_bytes())
_cache = BUILD / "cache" / _digest.hexdigest()[:16]
for _old in (BUILD / "cache").glob("*"):
    if _old != _cache:
        shutil.rmtree(_old)

# Kernels read a configuration of their own, and nothing of the user.
_ipython = BUILD / "ipython/profile_default"
_ipython.mkdir(parents=True, exist_ok=True)
(_ipython / "ipython_kernel_config.py").write_text('c.IPKernelApp.log_level = "ERROR"\n')
os.environ["IPYTHONDIR"] = str(_ipython.parent)

nb_execution_mode = "cache"
nb_execution_cache_path = str(_cache)
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_output_stderr = "remove"  # the logs of processes that guides start

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
maximum_signature_line_length = 72
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = hooks.SECTIONS

highlight_language = "text"

html_theme = "pydata_sphinx_theme"
html_title = "meshfeed"
html_static_path = [str(ROOT / "docs/_site/static")]
templates_path = [str(ROOT / "docs/_site/templates")]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
html_extra_path = [str(ROOT / "wasm/page/dist/layout.html"), str(ROOT / "docs/_site/extra")]
html_favicon = str(ROOT / "docs/_site/static/favicon.svg")
html_search_scorer = str(ROOT / "docs/_site/static/scorer.js")
html_copy_source = False
html_show_sphinx = False
html_sidebars = {"**": ["sections"]}
html_theme_options = {
    "logo": {"text": "meshfeed", "image_light": html_favicon, "image_dark": html_favicon},
    "navbar_align": "left",
    "navbar_center": [],
    "navbar_end": ["layout-page", "theme-switcher"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["site-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "secondary_sidebar_items": ["page-toc"],
}
copybutton_exclude = ".linenos, .gp, .go"


def setup(app):
    site = pages.Site(Path(app.srcdir))
    headers.build(site)
    reference.build(site)
    site.build()
    hooks.setup(app)
