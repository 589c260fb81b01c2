#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""summarize_tests.py RUN=FOLDER...: numbers of tests per suite, and their sum as the last line `N passed, N failed`.

Each FOLDER holds the results of one CTest run: ctest.xml (JUnit) and, for GoogleTest programs, <program>.json. A program
counts with its own tests, as do unittest scripts and Qt Test programs by the line they end with; any other CTest entry
counts as one. A program that failed beyond its tests (crash, time-out, sanitizer report) counts as one failure more.
Exit status 1 on any failure, or where no test ran."""
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import namedtuple
from pathlib import Path

Count = namedtuple("Count", "passed failed skipped")


def count_program(path):
    """(Count, names of failed tests) of a GoogleTest result file; None where it is missing or cut short."""
    try:
        suites = json.loads(path.read_text(encoding="utf-8"))["testsuites"]
    except (OSError, ValueError, KeyError):
        return None
    passed, skipped, failed = 0, 0, []
    for suite in suites:
        for test in suite["testsuite"]:
            if test.get("failures"):
                failed.append(f"{suite['name']}.{test['name']}")
            elif test.get("result") == "SKIPPED":
                skipped += 1
            elif test.get("status") == "RUN":
                passed += 1
    return Count(passed, len(failed), skipped), failed


def count_entry(case):
    """(Count, names of failed tests) of a CTest entry without a GoogleTest result file."""
    name, status = case.get("name"), case.get("status")
    if status in ("disabled", "notrun") and case.find("failure") is None:
        return Count(0, 0, 1), []
    output = case.findtext("system-out", "")
    passed, failed, skipped = 0, 0, 0
    for row in re.finditer(r"^Totals: (\d+) passed, (\d+) failed, (\d+) skipped", output, re.M):  # Qt Test
        passed, failed, skipped = passed + int(row[1]), failed + int(row[2]), skipped + int(row[3])
    for row in re.finditer(r"^Ran (\d+) tests? in ", output, re.M):  # unittest
        bad = sum(int(n) for n in re.findall(r"(?:failures|errors)=(\d+)", output))
        passed, failed = passed + int(row[1]) - bad, failed + bad
    names = [f"{name}: {test}" for test in re.findall(r"^(?:FAIL!  : |(?:FAIL|ERROR): )(\S+)", output, re.M)]
    if status == "run":
        return Count(max(passed, 0 if skipped else 1), 0, skipped), []
    return Count(passed, max(failed, 1), skipped), names or [name]


def count_run(folder):
    """Yields (entry, Count, names of failures) for each CTest entry."""
    for case in ElementTree.parse(folder / "ctest.xml").getroot().iter("testcase"):
        name = case.get("name")
        program = count_program(folder / f"{name}.json")
        if program is None:
            yield name, *count_entry(case)
            continue
        count, failures = program
        if case.get("status") == "fail" and not failures:
            count, failures = count._replace(failed=1), [f"{name} (failed outside its tests)"]
        yield name, count, failures


def main():
    total, all_failures = Count(0, 0, 0), []
    for argument in sys.argv[1:]:
        run, folder = argument.split("=", 1)
        print(f"\n{run}:")
        for name, count, failures in sorted(count_run(Path(folder))):
            extra = "".join(f", {n} {word}" for n, word in ((count.failed, "FAILED"), (count.skipped, "skipped")) if n)
            print(f"  {name:<40} {count.passed:5d} passed{extra}")
            total = Count(*(a + b for a, b in zip(total, count)))
            all_failures += [f"{run}: {failure}" for failure in failures]
    print()
    for failure in all_failures:
        print("FAILED", failure)
    if total.skipped:
        print(f"{total.skipped} skipped")
    print(f"{total.passed} passed, {total.failed} failed")
    return 0 if total.passed and not total.failed else 1


if __name__ == "__main__":
    sys.exit(main())
