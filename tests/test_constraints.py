"""Every pinned version has the hashes of its files beside it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_hashes_are_of_the_pinned_versions():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [line for line in lines if line and not line.startswith("#")]
    text = (ROOT / "constraints-hashes.txt").read_text()
    blocks = re.findall(r"^(\S+==\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", text, re.MULTILINE)
    assert [name for name, _ in blocks] == pinned
    assert all(hashes for _, hashes in blocks)
