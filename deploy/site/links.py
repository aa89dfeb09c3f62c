"""Let links of the site that lead out of docs/ lead to the repository instead; see mkdocs.yml."""

from __future__ import annotations

REPOSITORY = "https://github.com/mcpboard/mcpboard/blob/main/"


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return a page whose links to files outside docs/ name the repository."""
    return markdown.replace("](../", f"]({REPOSITORY}")
