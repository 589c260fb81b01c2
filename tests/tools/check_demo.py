#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""check_demo.py --requests N [--junit FILE] [--limit SECONDS] EVENTS.jsonl -- COMMAND...: runs a short demo and checks its
events: it ends well within the limit, answers every request, updates the adapter, and decides on a candidate only by a
row that says why. Learning itself is judged by longer runs."""
import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from xml.sax.saxutils import quoteattr

VERDICTS = {"accept", "reject", "silent"}
DECISIONS = {"promote", "reject", "hold"}


def faults(lines, requests):
    """What is wrong with the events, as a list of sentences."""
    events = {}
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
            events.setdefault(event["event"], []).append(event)
        except (ValueError, TypeError, KeyError):
            return [f"line {number} is not an event: {line[:80]!r}"]
    found = []
    answered = events.get("request", [])
    if len(answered) != requests:
        found.append(f"{len(answered)} requests instead of {requests}")
    if len({r.get("record_id") for r in answered}) != len(answered):
        found.append("two requests have the same record id")
    if any(r.get("verdict") not in VERDICTS or not r.get("reason") for r in answered):
        found.append("a request has no verdict or no reason")
    steps = events.get("step", [])
    if not steps:
        found.append("no update step")
    if any(not math.isfinite(float(s.get("loss") if s.get("loss") is not None else math.nan)) for s in steps):
        found.append("a step's loss is not a finite number")
    decided = events.get("decision", [])
    if any(d.get("verdict") not in DECISIONS or not d.get("reason") for d in decided):
        found.append("a decision has no verdict or no reason")
    promoted = {d.get("version") for d in decided if d.get("verdict") == "promote"}
    if not {s.get("version") for s in events.get("swap", [])} <= promoted | {0}:
        found.append("a version was swapped in without a decision that promotes it")
    summaries = events.get("summary", [])
    if len(summaries) != 1:
        found.append(f"{len(summaries)} summary events instead of one")
    elif summaries[0].get("requests") != requests:
        found.append(f"the summary counts {summaries[0].get('requests')} requests")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--junit", type=Path)
    parser.add_argument("--limit", type=float, default=600, help="seconds")
    parser.add_argument("events", type=Path)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    started = time.monotonic()
    try:
        code = subprocess.run(options.command, timeout=options.limit).returncode
        found = [f"exit status {code}"] if code else []
    except subprocess.TimeoutExpired:
        found = [f"not done after {options.limit:.0f} s"]
    except OSError as error:
        found = [f"could not start: {error}"]
    if options.events.exists():
        found += faults(options.events.read_text(encoding="utf-8").splitlines(), options.requests)
    else:
        found.append("no events were written")
    seconds = time.monotonic() - started
    for fault in found:
        print("demo:", fault)
    print(f"demo: {'failed' if found else 'good'} after {seconds:.0f} s")
    if options.junit:
        failure = f"<failure message={quoteattr('; '.join(found))}/>" if found else ""
        options.junit.write_text(f'<testsuite><testcase name="demo_on_the_real_model" status="{"fail" if found else "run"}">'
                                 f"{failure}</testcase></testsuite>")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
