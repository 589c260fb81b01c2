#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""translations_test.py LUPDATE ROOT: every text of the window is translated.

Runs lupdate on copies of the translation files: a text that is new or changed in the sources comes out unfinished. Checks
also that a translation keeps the place holders of its text."""
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree
from pathlib import Path


def problems(path):
    for context in tree.parse(path).getroot().findall("context"):
        for message in context.findall("message"):
            source, translation = message.find("source").text, message.find("translation")
            where = "%s: %s: %r" % (path.name, context.find("name").text, source)
            if translation.get("type") in ("vanished", "obsolete"):
                continue
            forms = [form.text or "" for form in translation.findall("numerusform")] or [translation.text or ""]
            if translation.get("type") == "unfinished" or not all(forms):
                yield where + " has no translation"
            for form in forms:
                if sorted(re.findall(r"%\w", source)) != sorted(re.findall(r"%\w", form)):
                    yield where + " has other place holders in its translation"


def main():
    lupdate, root = sys.argv[1], Path(sys.argv[2])
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted((root / "widgets/translations").glob("*.ts")):
            copy = Path(folder) / source.name
            shutil.copy(source, copy)
            plural = ["-pluralonly"] if source.stem.endswith("_en") else []
            folders = [str(root / name) for name in ("widgets", "app/workbench")]
            includes = [part for name in ("app", "widgets", "engine") for part in ("-I", str(root / name))]
            subprocess.run([lupdate, "-silent", *folders, *includes, "-locations", "none", *plural, "-ts", str(copy)],
                           check=True, stderr=subprocess.DEVNULL)
            found += problems(copy)
    print("\n".join(found) or "every text is translated")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
