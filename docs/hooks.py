"""What `make docs` does beside mkdocs: formulas become MathML, which browsers draw themselves, and a notebook becomes a page.

A formula is written as `$…$`, or as `$$…$$` on lines of its own. The extension arithmatex finds them, also in docstrings.
A page `NAME.md` that holds the line `<!-- notebook -->` shows the notebook `NAME.ipynb` there, with its stored outputs.
The line `<!-- fields: module.Class -->` becomes a table of the class's fields, with what the source says of each.
"""

import html
import json
import re
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
THIN_SPACE = '<mspace width="0.17em"></mspace>'
NOTEBOOK = "<!-- notebook -->"
SOURCE = Path(__file__).parents[1] / "src"
FIELDS = re.compile(r"<!-- fields: ([\w.]+)\.(\w+) -->")


def as_mathml(found: re.Match[str]) -> str:
    """A formula that arithmatex has marked, with the spaces around functions that the converter leaves out."""
    tag, kind, tex = found[1], "inline" if found[2] == "(" else "block", html.unescape(found[3])
    made = re.sub(r"<mo[^>]*>([a-z]{2,})</mo>", r"<mi>\1</mi>", convert(tex, display=kind))
    made = re.sub(r"(?<!<msub>)(?<!<munder>)(<mi>[a-z]{2,}</mi>)(?=<m(?!o[ >]))", rf"\1{THIN_SPACE}", made)
    made = re.sub(r"(?:(?<=</mi>)|(?<=/msub>)|(?<=/msup>))(<mi>[a-z]{2,}</mi>)", rf"{THIN_SPACE}\1", made)
    return f'<{tag} class="formula">{made}</{tag}>'


def on_page_content(content: str, **_: Any) -> str:
    """After Markdown, also that of the docstrings."""
    return FORMULA.sub(as_mathml, content)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Before Markdown."""
    if NOTEBOOK in markdown:
        notebook = Path(page.file.abs_src_path).with_suffix(".ipynb")
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        markdown = markdown.replace(NOTEBOOK, "\n\n".join(part for cell in cells for part in shown(cell)))
    return FIELDS.sub(lambda found: fields_of(*found.groups()), markdown)


def fields_of(module: str, name: str) -> str:
    """A class's fields, its parents' too: default, and the docstring below or the comment behind."""
    members = griffe.load(module, search_paths=[SOURCE])[name].all_members.values()
    fields = [m for m in members if m.is_attribute and m.annotation is not None and "property" not in m.labels]
    columns = ["field", "default", "what it is"] if any(field.value for field in fields) else ["field", "what it is"]
    parts = {
        "field": lambda f: f"`{f.name}`",
        "default": lambda f: f"`{f.value}`" if f.value else "",
        "what it is": about,
    }
    lines = [columns, ["---"] * len(columns), *([parts[column](field) for column in columns] for field in fields)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def about(field: griffe.Attribute) -> str:
    """What the source says of a field; a shape is in brackets at the beginning."""
    behind = re.search(r"# (.*)", field.source)
    text = field.docstring.value if field.docstring else behind[1] if behind else ""
    return re.sub(r"^(\[.*?\])(, )?", r"`\1`\2", text).replace("\n", " ").replace("|", "\\|")


def shown(cell: dict[str, Any]) -> list[str]:
    """A cell as Markdown: its text, or its code and what it gave."""
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [text]
    return [f"```python\n{text}\n```", *map(result, cell["outputs"])]


def result(output: dict[str, Any]) -> str:
    """A stored output: a picture, or text."""
    data = output.get("data", {})
    if picture := data.get("image/png"):
        return f"![What the cell draws](data:image/png;base64,{picture.strip()})"
    return f"```text\n{''.join(output.get('text') or data['text/plain']).rstrip()}\n```"
