"""Updates ``exclusions.toml`` and the tables of ``docs/reference/onnx-operators.md``: ``python
tests/python/onnx/update_exclusions.py [WORD]``.

Runs the conformance tests (only those whose name contains the word), removes the entries that pass
and adds those that fail, with the error message. Reasons that a person wrote are kept. Review the
difference before you commit it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from conformance import CASES, EXCLUSIONS, exclusion, reason

FILE = Path(__file__).parent / "exclusions.toml"
HEAD = """\
# The conformance tests that fail, and why. `reason`: the importer or the compiler rejects the model. `differs`: the test fails in
# another way, for example by wrong results. A listed test that passes counts as a failure, unless its entry has
# `chance = true`. `python tests/python/onnx/update_exclusions.py` updates this file.
"""


def outcome(key: tuple[str, str]) -> tuple[str, str] | None:
    """Returns `None` if the test passes, otherwise the kind of its entry and the message."""
    import pliant
    from test_conformance import test_conformance

    warnings.simplefilter("ignore")
    try:
        test_conformance(*key)
    except (pliant.UnsupportedError, pliant.CompileError) as error:
        first = next((line[4:] for line in str(error).splitlines() if line.startswith("  - ")), str(error))
        return "reason", re.sub(r"^\w+ '[^']*': ", "", first).splitlines()[0]
    except AssertionError as error:
        return "differs", "\n".join(str(error).split()[:12]).replace("\n", " ")
    except Exception as error:  # Every other failure becomes an entry too.
        return "differs", str(error).splitlines()[0][:160]
    return None


def main(word: str = "") -> None:
    keys = [key for key in CASES if word in key[1] and key[0] != "real"]
    with ProcessPoolExecutor() as pool:
        outcomes = dict(zip(keys, pool.map(outcome, keys, chunksize=16), strict=True))
    groups: dict[tuple[str, str, str], list[str]] = {}
    for entry in EXCLUSIONS:
        groups[entry.get("kind", "node"), "differs" if "differs" in entry else "reason", reason(entry)] = []
    for key in CASES:
        entry, told = exclusion(*key), outcomes.get(key, ("", ""))
        if told is None and (entry is None or not entry.get("chance")):
            continue
        if entry is not None and (told is None or told[0] in ("", "differs" if "differs" in entry else "reason")):
            told = ("differs" if "differs" in entry else "reason", reason(entry))
        if told[0]:
            groups.setdefault((key[0], *told), []).append(key[1])
    chances = {reason(entry) for entry in EXCLUSIONS if entry.get("chance")}
    entries = [(k, names) for k, names in groups.items() if names]
    lines = [HEAD]
    for (kind, how, text), names in entries:
        lines += ["[[exclude]]", *([] if kind == "node" else [f'kind = "{kind}"']), f"{how} = {json.dumps(text, ensure_ascii=False)}"]
        lines += ["chance = true"] if text in chances else []
        lines += ["tests = [", *(f'    "{name}",' for name in names), "]", ""]
    FILE.write_text("\n".join(lines) if entries else HEAD + "exclude = []\n")
    failing = sum(map(len, groups.values()))
    # The page lists what passes.
    env = {**os.environ, "PLIANT_BLESS": "1"}
    subprocess.run([sys.executable, "-m", "pytest", "-q", FILE.with_name("test_operator_tables.py")], env=env, check=True)
    print(f"{len(CASES) - failing} of {len(CASES)} pass, {failing} are excluded")


if __name__ == "__main__":
    main(*sys.argv[1:])
