"""How the site is built: `make docs`, without the network, into build/docs. Every warning is an error."""

from __future__ import annotations

from tmuxmcp import __version__

project = "tmuxmcp"
version = release = __version__
extensions = ["myst_parser"]
exclude_patterns = ["_static"]
nitpicky = True

# Links to headings are checked as well.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "attrs_block"]
myst_links_external_new_tab = False

html_theme = "furo"
html_title = "tmuxmcp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
