"""Hooks of the documentation site: Sphinx roles of docstrings become code, as the site is made of Markdown."""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(r":(?:py:)?(?:func|class|meth|mod|attr|data|obj|exc):<code>~?([^<]*)</code>")


def on_page_content(html: str, **_: Any) -> str:
    """Replace roles that the Markdown converter left in front of code."""
    return _ROLE.sub(r"<code>\1</code>", html)
