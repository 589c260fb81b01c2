#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges a finished demo run from its JSON lines and its workspace, with code of its own.

    rescore_demo.py RUN.jsonl WORKSPACE [--metrics FILE] [--strict]

From the stored texts and their stored ends alone, by the rules of demo_rules.py: every answer of the stream, compared with the verdict
that was sent; the three arms of every pair of the gate's evidence; the final measurement on held-out prompts, compared with the summary.
Refolds the stored evidence of each gate decision by the betting formulas of the design and compares the verdict, log E and log F. Checks
that each line of the run agrees with its record, that no version answered before a promote row of its own, that the serving pointer moved
by promote rows alone, that no held-out prompt was trained on, that one set of sampling settings made every answer, that the recipe's one
deliberately bad candidate was there and was rejected, and with --metrics (the server's own count, see watch_metrics.py) that all went over HTTP.
--strict also asks for the demo's targets, --metrics among them. Exit 0 when all holds.
"""
import argparse
import json
import math
import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from demo_rules import PROTECTED_RULES, USER_RULES, Prompts, breaks_be_brief, names_topic  # noqa: E402


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


def rate(accepted):
    return sum(accepted) / max(1, len(accepted))


class Run:
    """What a run left behind: its lines, its workspace, and how many of its scores differ from ours."""

    def __init__(self, run, workspace):
        self.events = [json.loads(line) for line in open(run, encoding="utf-8")]
        self.requests = sorted((e for e in self.events if e["event"] == "request"), key=lambda e: e["n"])
        self.summary = next(e for e in self.events if e["event"] == "summary")
        self.db = sqlite3.connect(f"file:{workspace}/sluice.db?mode=ro", uri=True)
        self.db.row_factory = sqlite3.Row
        self.recipe = json.loads(self.db.execute("select recipe_json from session order by id desc").fetchone()[0])
        self.prompts = Prompts(self.recipe)
        self.records = {r["id"]: r for r in self.db.execute("select * from record order by seq")}
        self.problems = []
        self.scored = self.differing = 0

    def want(self, condition, text):
        if not condition:
            self.problems.append(text)

    def score(self, record):
        """Accepted and on its topic, by our rules, from the stored text and the stored end of the answer."""
        finished = record["finish_reason"] == "stop" and record["complete"] == 1
        text = record["completion_text"]
        return not breaks_be_brief(text, finished), names_topic(text, self.prompts.all[record["prompt_text"]][1])

    def compare(self, where, ours, theirs, record):
        self.scored += 1
        if bool(ours) != bool(theirs):
            self.differing += 1
            print(f"  {where}: {theirs} against ours {ours}: {record['finish_reason']}, {record['completion_text'][:100]!r}")


def check_requests(run):
    """Each line of the run, which a client wrote from its receipt, against the record, the verdict that was sent, and our own."""
    sent = {}
    for row in run.db.execute("select record, kind from feedback where retracted=0"):
        sent.setdefault(row["record"], []).append(row["kind"])
    accepted = []
    for e in run.requests:
        record = run.records.get(e["record_id"])
        if record is None or record["purpose"] != "live":
            run.problems.append(f"request {e['n']}: no live record {e['record_id']}")
            continue
        same = (record["completion_text"], record["prompt_text"], record["version"]) == (e["completion"], e["prompt"], e["adapter_version"])
        run.want(same, f"request {e['n']}: text, prompt or version differ from its record {e['record_id']}")
        run.want(sent.get(e["record_id"]) == [e["verdict"]], f"request {e['n']}: {e['verdict']}, stored {sent.get(e['record_id'])}")
        run.want(e["prompt"] in run.prompts.train, f"request {e['n']}: {e['prompt']!r} is none of the prompts to train on")
        accepted.append(run.score(record)[0])
        run.compare(f"request {e['n']}", accepted[-1], e["verdict"] == "accept", record)
    live = [r for r in run.records.values() if r["purpose"] == "live"]
    run.want(len(live) == len(run.requests) == run.summary["requests"],
             f"{len(live)} live records, {len(run.requests)} requests in the lines, {run.summary['requests']} in the summary")
    return accepted


def check_serving(run):
    """No version answers before a promote row of its own, and the serving pointer moves by promote rows alone."""
    promoted = {}
    for row in run.db.execute("select version, min(time_us) t from decision where verdict='promote' group by version"):
        promoted[row["version"]] = row["t"]
    for r in run.records.values():
        if r["purpose"] == "live" and r["version"] != 0:
            begun = r["received_us"] + r["queue_us"]
            run.want(promoted.get(r["version"], math.inf) <= begun, f"v{r['version']} answered {r['id']} without an earlier promote row")
    for row in run.db.execute("select id, kind, forced, n from decision where verdict='promote' and kind<>'startup'"):
        run.want(row["kind"] == "gate" and not row["forced"] and row["n"] > 0,
                 f"decision {row['id']} promoted by {row['kind']}{', forced' if row['forced'] else ''}, on {row['n']} pairs")
    before = None
    for row in run.db.execute("select s.version, s.previous, d.version decided, d.verdict from serving s join decision d on d.id=s.decision order by s.seq"):
        run.want(row["verdict"] == "promote" and row["decided"] == row["version"] and before in (None, row["previous"]),
                 f"the serving pointer went to v{row['version']} by a decision to {row['verdict']} v{row['decided']}, after v{before}")
        before = row["version"]
    run.want(before == run.summary["serving_version"], f"v{before} serves, the summary says v{run.summary['serving_version']}")
    trained = {i for (records,) in run.db.execute("select records from batch") for i in records.split()}
    run.want(all(run.records[i]["purpose"] == "live" and run.records[i]["split"] == "train" for i in trained),
             "a batch holds a record that was not to be trained on")


def conditions(record):
    """Sampling settings of a record; what a client may say about itself is none."""
    extra = {k: v for k, v in json.loads(record["sampling_json"]).items() if k not in ("user", "metadata", "turn")}
    return (round(record["temperature"], 6), record["top_p"], record["min_p"], record["top_k"], record["max_tokens"], json.dumps(extra, sort_keys=True),
            [m["content"] for m in json.loads(record["prompt_json"]) if m["role"] == "system"])


def check_conditions(run):
    recipe = run.recipe["sampling"]
    found = [conditions(r) for r in run.records.values()]
    run.want(all(c == found[0] for c in found), f"sampling settings differ: {[c for c in found if c != found[0]][:1]} against {found[0]}")
    run.want(found[0][:2] == (recipe["temperature"], recipe["top_p"]) and found[0][4] == recipe["max_tokens"],
             f"sampling settings {found[0]} are not the recipe's {recipe}")
    print(f"sampling settings of {len(found)} records: {'one set' if all(c == found[0] for c in found) else 'several'}")


def check_evidence(run):
    """Scores of every pair from the texts it names; the three arms must have had the same prompt, and each its own version."""
    rows = run.db.execute("select * from evidence where void_reason='' order by seq").fetchall()
    kept = {}  # (version, prompt) -> gate record: an anchor answers a prompt once, later pairs take that answer
    for r in run.records.values():
        if r["purpose"] == "gate":
            kept.setdefault((r["version"], r["prompt_text"]), r)
    texts = {id_: text for text, (id_, _) in run.prompts.held_out.items()}
    for row in rows:
        where = f"pair {row['idx']} of v{row['candidate']}"
        for arm in ("candidate", "incumbent", "anchor"):
            record = run.records.get(row[f"{arm}_record"])
            if record is None and arm == "anchor":
                if row["anchor"] == row["incumbent"]:
                    continue  # has no answer of its own, and its scores count nowhere
                record = kept.get((row["anchor"], texts.get(row["prompt_id"])))
            if record is None:
                run.problems.append(f"{where}: no record of the {arm}")
                continue
            run.want(record["version"] == row[arm], f"{where}: the {arm} v{row[arm]} was answered by v{record['version']}")
            run.want(record["prompt_text"] in run.prompts.held_out and run.prompts.held_out[record["prompt_text"]][0] == row["prompt_id"],
                     f"{where}: {record['prompt_text']!r} is not the held-out prompt {row['prompt_id']}")
            ours = run.score(record)
            run.compare(f"{where}, {arm}", ours[0], row[f"{arm}_score"], record)
            run.compare(f"{where}, {arm}, protected", ours[1], row[f"{arm}_protected"], record)
    print(f"re-scored {len(rows)} pairs of evidence")


def check_bad_candidate(run):
    wanted = 1 if run.recipe["demo"].get("bad_candidate") else 0
    bad = [r["id"] for r in run.db.execute("select id from version where label='deliberately bad'")]
    run.want(len(bad) == wanted, f"{len(bad)} candidates labelled deliberately bad, wanted {wanted}")
    for version in bad:
        verdicts = [v for (v,) in run.db.execute("select verdict from decision where version=?", (version,))]
        run.want("reject" in verdicts and "promote" not in verdicts, f"the deliberately bad v{version} was not rejected: {verdicts}")
        inverted = run.db.execute("select b.inverted from version v join step s on s.id=v.step join batch b on b.id=s.batch where v.id=?",
                                  (version,)).fetchone()
        run.want(inverted and inverted[0] == 1, f"the deliberately bad v{version} was not trained on inverted rewards")
    print(f"deliberately bad: versions {bad}")


def heldout_records(run, version):
    """Answers of the final measurement: the probes on held-out prompts. What the gate's checks ask are prompts of other topics."""
    return [r for r in run.records.values() if r["purpose"] == "probe" and r["version"] == version and r["prompt_text"] in run.prompts.held_out]


def measure(run, version):
    """Our own count of the final measurement: accepted, on topic, of how many, and the prompts."""
    records = heldout_records(run, version)
    run.want(len({r["prompt_text"] for r in records}) == len(records), f"v{version} was measured twice on a held-out prompt")
    scores = [run.score(r) for r in records]
    return sum(a for a, _ in scores), sum(t for _, t in scores), len(records), {r["prompt_text"] for r in records}


def check_heldout(run, accepted):
    """The figures of the summary against our own; returns ours."""
    base, serving = measure(run, 0), measure(run, run.summary["serving_version"])
    run.want(base[3] == serving[3], "base and version in service were measured on different prompts")
    for name, (accept, topic, n, _) in (("base", base), ("serving", serving)):
        for what, ours in (("heldout", accept), ("protected", topic)):
            k, all_ = map(int, run.summary[f"{what}_{name}"].split("/"))
            run.want(all_ == n and abs(k - ours) <= 0.02 * n, f"{what}_{name}: {k}/{all_} in the summary, {ours}/{n} by our rule")
    run.want(abs(run.summary["accept_last64"] - rate(accepted[-64:])) <= 0.02 and abs(run.summary["accept_first32"] - rate(accepted[:32])) <= 0.04,
             f"the summary's accept rates {run.summary['accept_first32']}, {run.summary['accept_last64']} are not ours")
    return base[:3], serving[:3]


def check_http(run, metrics):
    """That the server counted the requests and verdicts of the stream, in the last /metrics that was read while the program ran."""
    counted = {"requests": 0, "feedback": 0}
    for line in open(metrics, encoding="utf-8"):
        for name, label in (("requests", 'route="chat"'), ("feedback", 'source="persona"')):
            if line.startswith(f"sluice_{name}_total{{") and label in line:
                counted[name] += int(line.rsplit(" ", 1)[1])
    n = len(run.requests)
    run.want(counted == {"requests": n, "feedback": n}, f"/metrics counted {counted}, the stream sent {n} of each")
    print(f"/metrics: {counted['requests']} chat requests, {counted['feedback']} verdicts over HTTP")


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
    parser.add_argument("--metrics", help="the server's /metrics, read after the last request of the stream")
    args = parser.parse_args()
    run = Run(args.run, args.workspace)
    if (run.recipe["user"]["rules"], run.recipe["protected"]["rules"]) != (USER_RULES, PROTECTED_RULES):
        print("PROBLEM: the recipe has other rules than demo_rules.py: nothing to judge by")
        return 1
    accepted = check_requests(run)
    check_serving(run)
    check_conditions(run)
    check_evidence(run)
    check_decisions(run.db, run.problems)
    check_bad_candidate(run)
    base, serving = check_heldout(run, accepted)
    if args.metrics:
        check_http(run, args.metrics)
    print(f"{run.scored} scores of {len(run.requests)} requests and of the evidence, {run.differing} disagreements")
    run.want(run.differing <= 0.02 * run.scored, f"{run.differing} of {run.scored} scores differ from the independent rule")
    promotes = [e for e in run.events if e["event"] == "decision" and e["verdict"] == "promote"]
    first, last, seconds = rate(accepted[:32]), rate(accepted[-64:]), run.summary["seconds"]
    print(f"first 32 {first:.2f}, last 64 {last:.2f}, held-out base {base[0]}/{base[2]}, serving {serving[0]}/{serving[2]}, "
          f"protected {base[1]}/{base[2]} -> {serving[1]}/{serving[2]}, "
          f"first promotion at {promotes[0]['t'] if promotes else None} s, all in {seconds:.0f} s")
    if args.strict:
        want, n = run.want, max(1, base[2])
        want(args.metrics, "no --metrics: nothing shows that the stream went over HTTP")
        want(0.15 <= first <= 0.5, f"first 32 accepted {first:.2f}, wanted 0.15 to 0.5")
        want(last >= 0.85, f"last 64 accepted {last:.2f}, wanted 0.85")
        want(promotes and promotes[0]["t"] <= 180, "no promotion within 3 minutes")
        want(seconds <= 420, f"{seconds:.0f} s in all, wanted 420")
        want(base[2] >= 100, f"measured on {base[2]} held-out prompts, wanted 100")
        want(serving[0] >= 0.85 * n, f"held-out serving {serving[0]}/{n}, wanted 0.85")
        want(base[0] <= 0.5 * n, f"held-out base {base[0]}/{n}, wanted at most 0.5")
        want(base[1] - serving[1] <= 0.05 * n, f"protected metric {base[1]}/{n} -> {serving[1]}/{n}, a loss of at most 5 points wanted")
    for p in run.problems:
        print("PROBLEM:", p)
    return 1 if run.problems else 0


if __name__ == "__main__":
    sys.exit(main())
