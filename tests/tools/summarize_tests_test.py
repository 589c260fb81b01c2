#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The summary counts every test once and loses no failure."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).with_name("summarize_tests.py")


def gtest(*tests):
    rows = [{"name": name, "status": "RUN", "result": "SKIPPED" if how == "skip" else "COMPLETED",
             **({"failures": [{"failure": "x"}]} if how == "fail" else {})} for name, how in tests]
    return json.dumps({"testsuites": [{"name": "Suite", "testsuite": rows}]})


class SummarizeTest(unittest.TestCase):
    def summarize(self, cases, programs):
        with tempfile.TemporaryDirectory() as folder:
            xml = "".join(f'<testcase name="{n}" status="{s}">{inner}</testcase>' for n, s, inner in cases)
            Path(folder, "ctest.xml").write_text(f"<testsuite>{xml}</testsuite>")
            for name, text in programs.items():
                Path(folder, f"{name}.json").write_text(text)
            done = subprocess.run([sys.executable, TOOL, f"release={folder}"], capture_output=True, text=True)
            return done.returncode, done.stdout.strip().split("\n")

    def test_counts_tests_of_programs_and_single_checks(self):
        status, lines = self.summarize([("a_test", "run", ""), ("check", "run", "")], {"a_test": gtest(("x", ""), ("y", ""))})
        self.assertEqual((status, lines[-1]), (0, "3 passed, 0 failed"))

    def test_names_a_failed_test(self):
        status, lines = self.summarize([("a_test", "fail", "<failure/>")], {"a_test": gtest(("x", ""), ("y", "fail"))})
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))
        self.assertIn("FAILED release: Suite.y", lines)

    def test_a_crash_after_good_tests_is_a_failure(self):
        status, lines = self.summarize([("a_test", "fail", "<failure/>")], {"a_test": gtest(("x", ""))})
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))

    def test_a_crash_before_any_result_is_a_failure(self):
        status, lines = self.summarize([("a_test", "fail", "<failure/>"), ("b", "run", "")], {"a_test": '{"testsui'})
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))

    def test_skips_are_told_apart(self):
        status, lines = self.summarize([("a_test", "run", ""), ("check", "notrun", "<skipped/>")],
                                       {"a_test": gtest(("x", ""), ("y", "skip"))})
        self.assertEqual((status, lines[-2:]), (0, ["2 skipped", "1 passed, 0 failed"]))

    def test_scripts_and_qt_programs_count_by_their_last_line(self):
        status, lines = self.summarize([("s", "run", "<system-out>Ran 16 tests in 0.2s</system-out>"),
                                        ("q", "run", "<system-out>Totals: 5 passed, 0 failed, 1 skipped, 0</system-out>")], {})
        self.assertEqual((status, lines[-2:]), (0, ["1 skipped", "21 passed, 0 failed"]))

    def test_failures_of_scripts_and_qt_programs_are_counted_and_named(self):
        script = "<system-out>FAIL: test_a (m.T)\nERROR: test_b (m.T)\nRan 5 tests in 1s\nFAILED (failures=1, errors=1)</system-out>"
        qt = "<system-out>FAIL!  : Window::labels() x\nTotals: 4 passed, 1 failed, 0 skipped, 0 blacklisted</system-out>"
        status, lines = self.summarize([("s", "fail", script), ("q", "fail", qt)], {})
        self.assertEqual((status, lines[-1]), (1, "7 passed, 3 failed"))
        self.assertIn("FAILED release: q: Window::labels()", lines)
        self.assertIn("FAILED release: s: test_b", lines)

    def test_nothing_run_is_a_failure(self):
        self.assertEqual(self.summarize([], {}), (1, ["release:", "", "0 passed, 0 failed"]))


if __name__ == "__main__":
    sys.exit(unittest.main())
