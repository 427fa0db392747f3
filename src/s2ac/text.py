"""Text from outside made inert: run names, settings and metric names may hold anything."""

import json
import math
import re
import shlex
import unicodedata
from typing import Any

LONGEST = 2_000
"""Characters of one text that are shown; a longer one is cut and says so."""


def printable(text: str) -> str:
    """The text on one line without characters that a terminal obeys or that reorder their neighbours.

    Control and format characters (escape sequences, NUL, bidi overrides, zero-width ones) and halves of surrogate
    pairs, which no encoding can write, appear as escapes such as \\x1b.
    """
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}… ({len(text)} characters)"
    if text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} else c for c in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def spreadsheet(value: Any) -> Any:
    """A value for a cell of a csv: text that a spreadsheet would take for a formula begins with ', numbers stay numbers."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    first = unicodedata.normalize("NFKC", text).lstrip()[:1]  # of wide letters too, which some spreadsheets take
    return f"'{text}" if first in {"=", "+", "-", "@"} else text


def escaped(value: Any) -> str:
    """Text in a line or a table of Markdown: it makes no row, no cell, no markup and no element."""
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", printable(str(value)))


_MARKUP = re.compile(r"[\\`*\[\]<>|~$&]|(?<![^\W_])_|_(?![^\W_])")  # a _ between letters is none


def named(error: BaseException) -> str:
    """An error of somebody else's code, on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def command(*words: Any) -> str:
    """A command of ours that can be pasted into a shell, whatever the names in it are."""
    return shlex.join(["s2ac", *map(str, words)])


def inert(value: Any) -> Any:
    """A tree of JSON values with every text printable and every number finite or None."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {printable(str(name)): inert(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [inert(part) for part in value]
    return value


def to_json(value: Any) -> str:
    """JSON of `inert(value)` that may stand inside a script element: ASCII, without <, > and &."""
    text = json.dumps(inert(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
