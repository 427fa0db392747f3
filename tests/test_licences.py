"""What is installed with the package may be used by everybody: every run-time dependency has a permissive licence."""

import re
from importlib import metadata

from packaging.requirements import Requirement

PERMISSIVE = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Unlicense|Zlib|HPND|PIL|0BSD|CNRI|matplotlib", re.I
)
COPYLEFT = re.compile(r"GPL|GNU|AGPL|EUPL|CDDL|EPL|SSPL|CC[- ]BY[- ](SA|NC)", re.I)
MIXED = {"tqdm": ("MPL-2.0 AND MIT", "MPL-2.0")}
"""MPL asks only that changes of its own files stay open; none is changed or shipped here."""


def needed(name, seen):
    """A distribution and all that it needs where these tests run, without its extras."""
    if name in seen:
        return seen
    seen.add(name)
    for line in metadata.requires(name) or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            needed(requirement.name.lower().replace("_", "-"), seen)
    return seen


def licence_of(name):
    about = metadata.metadata(name)
    trove = [line for line in about.get_all("Classifier") or [] if line.startswith("License ::")]
    return " ".join(filter(None, [about.get("License-Expression"), *trove, (about.get("License") or "")[:200]]))


def test_every_dependency_has_a_permissive_licence():
    names = needed("s2ac", set()) - {"s2ac"}
    assert {"jax", "numpy", "scipy", "tqdm", "safetensors", "gymnasium"} < names
    for name in sorted(names):
        licence = licence_of(name)
        if name in MIXED:
            assert any(known in licence for known in MIXED[name]), licence
        else:
            assert PERMISSIVE.search(licence), f"{name}: {licence!r}"
            assert not COPYLEFT.search(licence), f"{name}: {licence!r}"


def test_the_words_tell_them_apart():
    assert not PERMISSIVE.search("GPL-3.0-or-later")
    assert COPYLEFT.search("GNU Lesser General Public License")
    assert COPYLEFT.search("AGPL-3.0") is not None
