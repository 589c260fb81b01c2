#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kills the program again and again in the middle of the loop and looks whether anything acknowledged was lost.

    kill_loop.py [--program build/release/bin/sluice-headless] [--model tests/data/tiny-llama.gguf] [--rounds 20] [--seed 1]

Each round starts `serve` on the same workspace, sends requests and verdicts from four threads, and ends by kill -9: first at random
moments, then at every fault point of the path (commits, fsyncs, renames, publishes). A ledger of this script holds what the server
acknowledged; after every kill `verify` must pass, the ledger must be in the database, the version in service must be one with a
committed promote, and the next start must serve it: its status says so, and the receipt of the first answer. A fault point that a round
doesn't reach is tried again at its first pass and with more time; the loop fails if it is never reached. Standard library only; exit 0
when all rounds passed."""
import argparse
import http.client
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from sluice_server import NotStarted, Server  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


TRIES = ((None, 12), (1, 30), (1, 60))  # pass of the fault point (None: drawn), seconds to reach it


class Ledger:
    def __init__(self):
        self.lock = threading.Lock()
        self.receipts, self.feedback = {}, set()


class Client(threading.Thread):
    """Sends requests and verdicts until the server is gone."""

    def __init__(self, url, ledger, seed, actions):
        super().__init__(daemon=True)
        self.url, self.ledger, self.random, self.actions = url, ledger, random.Random(seed), actions

    def call(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def run(self):
        try:
            while True:
                answer = self.call("/v1/chat/completions", {"messages": [{"role": "user", "content": f"p{self.random.random()}"}],
                                                            "max_tokens": 6, "temperature": 0.7, "seed": self.random.randrange(1 << 30)})
                record = answer["sluice"]["record_id"]
                with self.ledger.lock:
                    self.ledger.receipts[record] = answer["sluice"]["version"]
                kind = self.random.choice(["accept", "reject"])
                state = self.call("/sluice/v1/feedback", {"record_id": record, "kind": kind, "source": "human"})
                with self.ledger.lock:
                    self.ledger.feedback.add(state["feedback_id"])
                if self.actions and self.random.random() < 0.05:
                    self.decide()
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            return

    def decide(self):
        """Promotes or rolls back by hand, so that kills fall into swaps as well."""
        with urllib.request.urlopen(self.url + "/sluice/v1/adapters", timeout=30) as answer:
            versions = [v["version"] for v in json.loads(answer.read())["data"] if v["state"] not in ("pruned", "evaluating", "serving")]
        if not versions:
            return
        version = self.random.choice(versions)
        for action in ("promote", "rollback"):
            try:
                self.call("/sluice/v1/decisions", {"action": action, "version": version, "actor": "kill_loop", "note": "round"})
                return
            except urllib.error.HTTPError:
                continue


def start(args, folder, fault):
    """None where the program reached the fault point before it served."""
    env = {**os.environ, "SLUICE_FAULT": fault} if fault else None
    extra = [] if Path(folder, "sluice.db").exists() else ["--recipe", str(ROOT / "resources/recipes/be-brief.json")]
    try:
        return Server(args.program, folder, *extra, model=args.model, env=env, stderr=subprocess.DEVNULL)
    except NotStarted:
        return None


def resume(url):
    with urllib.request.urlopen(url + "/sluice/v1/status", timeout=30) as answer:
        session = json.loads(answer.read())["session"]
    if session and session["state"] == "paused":
        urllib.request.urlopen(urllib.request.Request(f"{url}/sluice/v1/sessions/{session['id']}/resume", b"{}",
                                                      {"Content-Type": "application/json"}), timeout=30).close()


def check(args, folder, ledger):
    problems = []
    ran = subprocess.run([args.program, "verify", "--data", folder], capture_output=True, text=True)
    if ran.returncode != 0:
        problems.append(f"verify: {ran.stdout}{ran.stderr}")
    db = sqlite3.connect(f"file:{folder}/sluice.db?mode=ro", uri=True)
    kept = dict(db.execute("select id, version from record"))
    feedback = {i for (i,) in db.execute("select id from feedback")}
    lost = [r for r, v in ledger.receipts.items() if kept.get(r, -1) != v]
    if lost:
        problems.append(f"{len(lost)} acknowledged records are gone or of another version, e.g. {lost[0]}")
    if not {int(re.sub(r"\D", "", str(f))) for f in ledger.feedback} <= feedback:
        problems.append("acknowledged feedback is gone")
    for version, in db.execute("select distinct version from record where purpose='live' and version <> 0"):
        if not db.execute("select 1 from decision where version=? and verdict='promote'", (version,)).fetchone():
            problems.append(f"version {version} answered without a promote decision")
    pointer = db.execute("select s.version, d.version, d.verdict from serving s join decision d on d.id=s.decision "
                         "order by s.seq desc limit 1").fetchone()
    db.close()
    if pointer[1:] != (pointer[0], "promote"):
        problems.append(f"version {pointer[0]} is in service by a decision to {pointer[2]} version {pointer[1]}")
    return problems + check_restart(args, folder, ledger, pointer[0])


def check_restart(args, folder, ledger, version):
    """Starts the program again, without a fault point, and asks which version serves: its status, and an answer that names no model."""
    try:
        server = Server(args.program, folder, model=args.model, stderr=subprocess.DEVNULL)
    except NotStarted as error:
        return [f"the next start: {error}"]
    try:
        said = server.call("/sluice/v1/status")[1]["serving"]["version"]
        status, answer = server.call("/v1/chat/completions", {"messages": [{"role": "user", "content": "after the kill"}], "max_tokens": 2})
    finally:
        server.kill()
    if status != 200:
        return [f"the next start answers {status}: {answer}"]
    answered = answer["sluice"]["version"]
    ledger.receipts[answer["sluice"]["record_id"]] = answered
    if (said, answered) != (version, version):
        return [f"version {version} was in service; after the next start the status says {said}, and {answered} answers"]
    return []


def play(args, folder, ledger, seed, fault, seconds):
    """One life of the program: until it dies at its fault point, or for so many seconds. True where it died by itself."""
    server = start(args, folder, fault)
    if not server:
        return True
    try:
        resume(server.url)
    except (OSError, http.client.HTTPException, ValueError):
        pass  # it may be dead by now
    clients = [Client(server.url, ledger, seed + i, True) for i in range(4)]
    for client in clients:
        client.start()
    try:
        server.process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        pass
    reached = server.process.poll() is not None
    server.kill()
    for client in clients:
        client.join()
    return reached


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/sluice-headless"))
    parser.add_argument("--model", default=str(ROOT / "tests/data/tiny-llama.gguf"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    found = subprocess.run(["grep", "-rhoE", r'fault_point\("[^"]+"', str(ROOT / "engine")], capture_output=True, text=True).stdout
    points = sorted(set(re.findall(r'"([^"]+)"', found)))
    if not points:
        print("no fault point found in engine/")
        return 1
    ledger, failed, number = Ledger(), 0, 0
    with tempfile.TemporaryDirectory() as temp:
        folder = temp + "/workspace"
        for point in [None] * args.rounds + points:
            for passes, seconds in TRIES if point else ((None, chance.uniform(0.3, 4.0)),):
                number += 1
                fault = f"{point}:{passes or chance.randrange(1, 6)}" if point else None
                reached = play(args, folder, ledger, args.seed * 1000 + number * 10, fault, seconds)
                problems = check(args, folder, ledger)
                if point and not reached and (passes, seconds) == TRIES[-1]:
                    problems.append("the fault point was never reached")
                if not point and reached:
                    problems.append("the program ended before it was killed")
                failed += bool(problems)
                print(f"round {number:3} {fault or 'random moment':40} {'' if not point or reached else '(point not reached) '}"
                      f"{len(ledger.receipts)} receipts, {len(ledger.feedback)} verdicts: {'; '.join(problems) or 'nothing lost'}", flush=True)
                if reached:
                    break
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
