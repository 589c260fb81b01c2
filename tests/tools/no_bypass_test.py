#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""no_bypass_test.py CXX: no_bypass.cpp compiles without its cases, and each case fails with the error it names."""
import re
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE = Path(__file__).with_name("no_bypass.cpp")
ENGINE = Path(__file__).resolve().parents[2] / "engine"
CXX = "c++"


def compile_case(number):
    return subprocess.run([CXX, "-std=c++20", "-fsyntax-only", f"-I{ENGINE}", f"-DCASE={number}", SOURCE],
                          capture_output=True, text=True)


class NoBypassTest(unittest.TestCase):
    def test_without_cases_it_compiles(self):
        result = compile_case(0)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_each_case_fails_as_named(self):
        cases = re.findall(r"^#elif CASE == (\d+)  // error: (.*)$", SOURCE.read_text(), re.M)
        self.assertGreaterEqual(len(cases), 8)
        for number, expected in cases:
            with self.subTest(number):
                result = compile_case(number)
                self.assertNotEqual(result.returncode, 0, f"case {number} compiles: a way round the gate")
                errors = [line for line in result.stderr.split("\n") if "error:" in line]
                self.assertTrue(errors and re.search(expected, errors[0]), result.stderr)


if __name__ == "__main__":
    CXX = sys.argv.pop(1) if len(sys.argv) > 1 else CXX
    sys.exit(unittest.main())
