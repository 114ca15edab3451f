"""README.md as a package index shows it: links that lead to the repository, at the commit.

A code host's runner says which these are, as GitHub's do. Elsewhere the links stay as they are.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?P<text>!?)\[(?P<words>[^\]]*)\]\((?P<target>(?!https?:|#)[^)\s]+)\)")


class LongDescription(MetadataHookInterface):
    """Gives the package its long description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Enter the text."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
        repository, commit = map(os.environ.get, ("GITHUB_REPOSITORY", "GITHUB_SHA"))
        if repository and commit:
            text = absolute(text, f"{server}/{repository}", commit)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute(text: str, repository: str, commit: str) -> str:
    """Return a page whose links lead to a repository's files, and images to their bytes."""

    def lead(found: re.Match[str]) -> str:
        way = "raw" if found["text"] else "blob"
        target = f"{repository}/{way}/{commit}/{found['target']}"
        return f"{found['text']}[{found['words']}]({target})"

    return LINK.sub(lead, text)
