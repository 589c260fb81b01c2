#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges a finished demo run from its JSON lines and its workspace, with code of its own.

    rescore_demo.py RUN.jsonl WORKSPACE [--strict]

Re-scores every text by the rule of `be-brief`, compares with the verdicts that were given; refolds the stored evidence of each
gate decision by the betting formulas of the design and compares verdict and log E, log F; checks that a version in service always
has an earlier promote row and that the deliberately bad candidate was rejected. --strict also asks for the demo's targets.
Exit 0 when all holds.
"""
import argparse
import json
import math
import re
import sqlite3
import sys


def words(text):
    return sum(1 for w in text.split() if any(c.isalnum() or ord(c) > 127 for c in w))


def breaks_be_brief(text, finished):
    """Names of the rules of be-brief that a reply breaks."""
    broken = []
    if not text.strip():
        broken.append("not-empty")
    if not finished:
        broken.append("finished")
    if not 5 <= words(text) <= 45:
        broken.append("words")
    if "\n" in text.strip():
        broken.append("one-paragraph")
    markup = (r"\*\*[^*\n]+\*\*|^ {0,3}#{1,6} |^\s*[-*+•] |^\s*\d+[.)] |`|^\s*>|^\s*\||^\s*(-{3,}|_{3,}|\*{3,})\s*$"
              r"|\*[^*\s][^*\n]*\*|__[^_\n]+__")
    if re.search(markup, text, re.M):
        broken.append("no-markup")
    return broken


def fold(pairs, s):
    """The highest log E and log F that the pairs reached, as a decision row keeps them."""
    rule = s["rule"] if "rule" in s else s
    k, mu0, v0, cap = rule["k"], rule["mu0"], rule["v0"], rule["lam_max"]
    delta = s["delta"]
    state = {"up": [0.0, 0.0, 0.0], "down": [0.0, 0.0, 0.0]}  # sum X, sum X^2, log E
    best = {"up": 0.0, "down": 0.0}
    for d in pairs:
        for name, x in (("up", d + delta), ("down", delta - d)):
            sx, sxx, log_e = state[name]
            lam = min(max((sx + mu0 * k) / (sxx + v0 * k), 0.0), cap)
            state[name] = [sx + x, sxx + x * x, log_e + math.log1p(lam * x)]
            best[name] = max(best[name], state[name][2])
    return best["up"], best["down"]


def rate(events):
    return sum(e["verdict"] == "accept" for e in events) / max(1, len(events))


def check_requests(requests, problems):
    disagreements = 0
    for e in requests:
        if e["verdict"] not in ("accept", "reject"):
            continue
        broken = breaks_be_brief(e["completion"], "finished" not in e["reason"])
        if (not broken) != (e["verdict"] == "accept"):
            disagreements += 1
            print(f"  disagreement at request {e['n']}: {e['verdict']} against {broken}: {e['completion'][:100]!r}")
    print(f"re-scored {len(requests)} requests, {disagreements} disagreements")
    if disagreements > len(requests) * 0.02:
        problems.append(f"{disagreements} verdicts differ from the independent rule")


def check_decisions(db, problems):
    settings = dict(db.execute("select id, settings_json from gate_settings"))
    checked = 0
    rows = db.execute("select id, version, verdict, stage, n, log_e, log_f, settings from decision where kind='gate' order by id")
    for id_, version, verdict, stage, n, log_e, log_f, settings_id in rows:
        if stage == "invariants" or not n:
            continue
        pairs = [c - i for c, i in db.execute(
            "select candidate_score, incumbent_score from evidence where candidate=? and void_reason='' "
            "and attempt=(select max(attempt) from evidence where candidate=?) order by idx limit ?", (version, version, n))]
        s = json.loads(settings[settings_id])
        up, down = fold(pairs, s)
        checked += 1
        if len(pairs) != n or abs(up - log_e) > 1e-9 or abs(down - log_f) > 1e-9:
            problems.append(f"decision {id_}: refolded log E {up:.6f}, log F {down:.6f} over {len(pairs)} pairs; stored {log_e:.6f}, {log_f:.6f} over {n}")
    print(f"refolded {checked} decisions")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("workspace")
    parser.add_argument("--strict", action="store_true")
    args = parser.parse_args()
    events = [json.loads(line) for line in open(args.run, encoding="utf-8")]
    requests = [e for e in events if e["event"] == "request"]
    summary = next(e for e in events if e["event"] == "summary")
    problems = []
    check_requests(requests, problems)
    db = sqlite3.connect(f"file:{args.workspace}/sluice.db?mode=ro", uri=True)
    check_decisions(db, problems)
    for version, label in db.execute("select id, label from version where label='deliberately bad'"):
        verdicts = [v for (v,) in db.execute("select verdict from decision where version=? and kind='gate'", (version,))]
        if "reject" not in verdicts:
            problems.append(f"the deliberately bad candidate v{version} was not rejected: {verdicts}")
    promotes = [e for e in events if e["event"] == "decision" and e["verdict"] == "promote"]
    ordered = sorted(requests, key=lambda e: e["n"])
    first, last = rate(ordered[:32]), rate(ordered[-64:])
    base, serving = (eval(summary[k]) if not summary[k].endswith("/0") else 0 for k in ("heldout_base", "heldout_serving"))
    print(f"first 32 {first:.2f}, last 64 {last:.2f}, held-out base {summary['heldout_base']}, serving {summary['heldout_serving']}, "
          f"protected {summary['protected_base']} -> {summary['protected_serving']}, "
          f"first promotion at {promotes[0]['t'] if promotes else None} s, all in {summary['seconds']:.0f} s")
    if args.strict:
        def want(condition, text):
            if not condition:
                problems.append(text)
        want(0.15 <= first <= 0.5, f"first 32 accepted {first:.2f}, wanted 0.15 to 0.5")
        want(last >= 0.85, f"last 64 accepted {last:.2f}, wanted 0.85")
        want(promotes and promotes[0]["t"] <= 180, "no promotion within 3 minutes")
        want(summary["seconds"] <= 420, f"{summary['seconds']:.0f} s in all, wanted 420")
        want(serving >= 0.85, f"held-out serving {summary['heldout_serving']}, wanted 0.85")
        want(base <= 0.5, f"held-out base {summary['heldout_base']}, wanted at most 0.5")
    for p in problems:
        print("PROBLEM:", p)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
