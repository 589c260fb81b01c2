#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check of a short demo accepts a good event file and names each fault."""
import json
import sys
import unittest

from check_demo import faults

GOOD = (
    [{"event": "request", "t": n, "n": n, "record_id": f"r{n}", "verdict": "accept", "reason": "short"} for n in (1, 2)]
    + [{"event": "step", "t": 3, "step": 1, "loss": 0.5, "candidate": 1},
       {"event": "decision", "t": 4, "version": 1, "verdict": "promote", "reason": "better"},
       {"event": "swap", "t": 4, "version": 1, "from": 0},
       {"event": "summary", "t": 5, "requests": 2}])


class CheckDemoTest(unittest.TestCase):
    def faults_after(self, change):
        events = json.loads(json.dumps(GOOD))
        events = change(events) or events
        return faults([json.dumps(event) for event in events], 2)

    def test_good_events(self):
        self.assertEqual(self.faults_after(lambda e: None), [])

    def test_each_fault_is_named(self):
        def edit(index, **values):
            return lambda events: events[index].update(values)

        for expected, change in {
            "requests instead of": lambda e: e[1:],
            "same record id": edit(1, record_id="r1"),
            "no verdict": edit(0, verdict="maybe"),
            "no update step": lambda e: e[:2] + e[3:],
            "not a finite number": edit(2, loss=None),
            "decision has no": edit(3, reason=""),
            "without a decision": edit(3, verdict="hold"),
            "0 summary events": lambda e: e[:-1],
            "summary counts": edit(5, requests=1),
        }.items():
            with self.subTest(expected):
                found = self.faults_after(change)
                self.assertEqual(len(found), 1, found)
                self.assertIn(expected, found[0])

    def test_a_line_that_is_no_event(self):
        self.assertEqual(faults(["loading..."], 0), ["line 1 is not an event: 'loading...'"])


if __name__ == "__main__":
    sys.exit(unittest.main())
