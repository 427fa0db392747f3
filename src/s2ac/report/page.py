"""Put the page together: markup, style, script and data in one file that names no other address.

The markup holds no text from outside: everything comes as JSON in a block that is not executed, and the script
writes it as text. The policy lets exactly this style and this script run, by their hashes.
"""

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

from s2ac.errors import S2acError
from s2ac.runs.files import replace
from s2ac.text import to_json


def render(data: dict[str, Any]) -> str:
    """The page."""
    style, script = _part("page.css"), _script()
    parts = {
        "POLICY": policy(style, script, bool(data["live"])),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": to_json(data),
    }
    page = _part("page.html")
    for name, text in parts.items():  # DATA comes last, so that nothing in it is taken for a placeholder
        page = page.replace(f"@@{name}@@", text, 1)
    return page


def policy(style: str, script: str, live: bool) -> str:
    """The content security policy: nothing may be loaded, and only the page's own code runs."""
    rules = [
        "default-src 'none'",
        f"script-src '{_digest(script)}'",
        f"style-src '{_digest(style)}'",
        "img-src data:",  # the empty icon
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join([*rules, "connect-src 'self'"] if live else rules)


def write(path: Path, text: str) -> None:
    """Write the page whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, text.encode())
    except OSError as error:
        raise S2acError(f"cannot write {path}: {error.strerror}; choose another place with --out") from error


SCRIPTS = [
    "metrics",
    "helpers",
    "lines",
    "chart",
    "curves",
    "pairs",
    "landscape",
    "clouds",
    "sections",
    "sweep",
    "main",
]
"""The script's files. Each declares functions and constants for those after it; the last one starts the page."""


def _script() -> str:
    """The script: its files in one scope of their own."""
    return "\n".join(['"use strict";', "(() => {", *(_part(f"{name}.js") for name in SCRIPTS), "})();\n"])


def _part(name: str) -> str:
    return (files("s2ac.report") / "web" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
