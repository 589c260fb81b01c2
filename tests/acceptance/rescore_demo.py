#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges a finished demo run from its JSON lines and its workspace, with code of its own.

    rescore_demo.py RUN.jsonl WORKSPACE [--strict]

Re-scores every text by the rule of `be-brief`, compares with the verdicts that were given; refolds the stored evidence of each
gate decision by the betting formulas of the design and compares the verdict, log E and log F; checks that a version in service always
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
    # Bold marks count where nothing closes them, too: the reader sees them.
    markup = (r"\*\*|__|^ {0,3}#{1,6} |^\s*[-*+•] |^\s*\d+[.)] |`|^\s*>|^\s*\||^\s*-{3,}\s*$|\*[^*\s][^*\n]*\*")
    if re.search(markup, text, re.M):
        broken.append("no-markup")
    return broken


class Bets:
    """One betting process of the design: stakes from past values alone; `best` is the highest log that it reached."""

    def __init__(self, s):
        self.s, self.sum, self.squares, self.log, self.best = s, 0.0, 0.0, 0.0, 0.0

    def add(self, x):
        s = self.s
        lam = min(max((self.sum + s["mu0"] * s["k"]) / (self.squares + s["v0"] * s["k"]), 0.0), s["lam_max"])
        self.sum, self.squares, self.log = self.sum + x, self.squares + x * x, self.log + math.log1p(lam * x)
        self.best = max(self.best, self.log)


def fold(pairs, s, anchored, guarded):
    """Verdict of the paired stage, log E and log F. A pair: scores of candidate, incumbent, anchor, then the protected ones."""
    e, f, ea, ha, hp, hpa, ep = (Bets(s) for _ in range(7))
    for c, i, a, cp, ip, ap in pairs:
        e.add(c - i + s["delta"])
        f.add(s["delta"] - c + i)
        ea.add(c - a + s["anchor_delta"])
        ha.add(-s["anchor_delta"] - c + a)
        hp.add(-s["protected_delta"] - cp + ip)
        hpa.add(-s["protected_delta"] - cp + ap)
        ep.add(s["protected_delta"] + cp - (ap if anchored else ip))
    shown = lambda bets, limit: bets.best >= math.log(limit)
    better = shown(e, 1 / s["alpha"])
    if guarded and (shown(hp, s["protected_limit"]) or anchored and shown(hpa, s["protected_limit"])):
        return "reject", e.best, f.best
    if anchored and shown(ha, s["anchor_limit"]):
        return "reject", e.best, f.best
    if better and (not anchored or shown(ea, s["anchor_limit"])) and (not guarded or shown(ep, 1 / s["protected_alpha"])):
        return "promote", e.best, f.best
    return "reject" if not better and shown(f, 1 / s["beta"]) else "hold", e.best, f.best


def share(text):
    """"12/104" as a number."""
    k, n = map(int, text.split("/"))
    return k / n if n else 0.0


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
    rows = db.execute("select id, version, verdict, stage, reason_code, n, log_e, log_f, settings, extra_json from decision "
                      "where kind='gate' order by id")
    for id_, version, verdict, stage, code, n, log_e, log_f, settings_id, extra in rows:
        if stage == "invariants" or not n:
            continue
        pairs = db.execute(
            "select candidate_score, incumbent_score, anchor_score, candidate_protected, incumbent_protected, anchor_protected "
            "from evidence where candidate=? and void_reason='' and attempt=(select max(attempt) from evidence where candidate=?) "
            "order by idx limit ?", (version, version, n)).fetchall()
        extra = json.loads(extra)
        refolded, up, down = fold(pairs, json.loads(settings[settings_id]), extra["anchor_applies"], bool(extra["protected_metric"]))
        checked += 1
        if len(pairs) != n or abs(up - log_e) > 1e-9 or abs(down - log_f) > 1e-9:
            problems.append(f"decision {id_}: refolded log E {up:.6f}, log F {down:.6f} over {len(pairs)} pairs; stored {log_e:.6f}, {log_f:.6f} over {n}")
        if refolded != verdict and code != "no_change":  # equal answers are a rule of their own
            problems.append(f"decision {id_}: refolded to {refolded}, stored as {verdict} ({code})")
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
    base, serving = share(summary["heldout_base"]), share(summary["heldout_serving"])
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
        lost = share(summary["protected_base"]) - share(summary["protected_serving"])
        want(lost <= 0.05, f"protected metric {summary['protected_base']} -> {summary['protected_serving']}, a loss of at most 5 points wanted")
    for p in problems:
        print("PROBLEM:", p)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
