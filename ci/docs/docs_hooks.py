"""Hooks of the documentation site that replace Sphinx roles in docstrings by Markdown code."""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(r":(?:py:)?(?:func|class|meth|mod|attr|data|obj|exc):<code>~?([^<]*)</code>")


def on_page_content(html: str, **_: Any) -> str:
    """Remove Sphinx roles in front of code."""
    return _ROLE.sub(r"<code>\1</code>", html)
