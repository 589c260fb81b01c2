#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop by real processes and real HTTP on a tiny model: labels of a client train the next step, a kill -9 loses nothing that
was acknowledged, the session comes back paused, decisions by hand and roll-backs go through the one writing route.

    loop_test.py SLUICE_HEADLESS MODEL.gguf RECIPE_FOLDER

Standard library only. Exit 0 when every check passed."""
import json
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import sluice_server  # noqa: E402

PROGRAM, MODEL, RECIPES = sys.argv[1:4]


class Server(sluice_server.Server):
    def __init__(self, folder, *extra):
        super().__init__(PROGRAM, folder, *extra, model=MODEL, stderr=subprocess.PIPE)

    def chat(self, text, seed):
        status, answer = self.call("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], "max_tokens": 8,
                                                            "temperature": 0.7, "seed": seed})
        assert status == 200, answer
        return answer

    def wait(self, condition, what, seconds=120):
        end = time.monotonic() + seconds
        tick = threading.Event()
        while time.monotonic() < end:
            status = self.call("/sluice/v1/status")[1]
            if condition(status):
                return status
            tick.wait(0.05)
        raise AssertionError(f"{what} did not happen in {seconds} s: {status} {self.errors}")


def database(folder):
    return sqlite3.connect(f"file:{folder}/sluice.db?mode=ro", uri=True)


def verify(folder):
    return subprocess.run([PROGRAM, "verify", "--data", folder], capture_output=True, text=True)


# Labels of one step.
BATCH = json.load(open(RECIPES + "/be-brief.json", encoding="utf-8"))["learn"]["batch_size"]


class LoopTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = self.temp.name + "/workspace"
        self.addCleanup(self.temp.cleanup)

    def label_batch(self, server, kind):
        receipts = []
        for i in range(BATCH):
            answer = server.chat(f"prompt number {i}", i)
            receipts.append(answer["sluice"]["record_id"])
        for i, receipt in enumerate(receipts):
            verdict = kind if kind else ("accept" if i % 2 else "reject")
            status, answer = server.call("/sluice/v1/feedback", {"record_id": receipt, "kind": verdict, "source": "human"})
            self.assertEqual(status, 200, answer)
            self.assertEqual(answer["state"], "waiting")
        return receipts

    def test_labels_train_the_next_step(self):
        server = Server(self.folder, "--recipe", RECIPES + "/be-brief.json")
        receipts = self.label_batch(server, None)
        server.wait(lambda s: s["training"]["head_step"] >= 1, "the step")
        with database(self.folder) as db:
            used = {r for (r,) in db.execute("select id from record where used_in_step is not null")}
        self.assertEqual(used, set(receipts))
        status, answer = server.call("/sluice/v1/feedback", {"record_id": receipts[0], "kind": "accept", "source": "human"})
        self.assertEqual((status, answer["state"]), (200, "consumed"))
        self.assertEqual(server.stop(), 0)
        self.assertEqual(verify(self.folder).returncode, 0, verify(self.folder).stdout)

    def test_a_kill_loses_nothing_acknowledged(self):
        server = Server(self.folder, "--recipe", RECIPES + "/be-brief.json")
        receipts = self.label_batch(server, None)
        server.kill()
        checked = verify(self.folder)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        with database(self.folder) as db:
            kept = {r for (r,) in db.execute("select id from record")}
            labelled = {r for (r,) in db.execute("select record from feedback")}
        self.assertTrue(set(receipts) <= kept)
        self.assertEqual(set(receipts), labelled)
        again = Server(self.folder)
        status = again.wait(lambda s: s["session"] is not None, "the session's return")
        self.assertEqual(status["session"]["state"], "paused")
        self.assertEqual(status["serving"]["version"], 0)
        session = status["session"]["id"]
        self.assertEqual(again.call(f"/sluice/v1/sessions/{session}/resume", {})[0], 200)
        again.wait(lambda s: s["training"]["head_step"] >= 1, "the step after the restart")
        self.assertEqual(again.stop(), 0)

    def test_decisions_by_hand_and_back(self):
        server = Server(self.folder, "--recipe", RECIPES + "/be-brief.json")
        # The recipe says how many steps make a candidate; whatever the gate makes of it, a person may force it.
        for _ in range(json.loads(Path(RECIPES, "be-brief.json").read_text())["learn"]["candidate_every"]):
            before = server.call("/sluice/v1/status")[1]["training"]["head_step"]
            self.label_batch(server, None)
            server.wait(lambda s: s["training"]["head_step"] > before, "a step")
        server.wait(lambda s: len(self.versions(server)) > 1, "a candidate")
        decided = server.wait(lambda s: self.state_of(server, 1) not in ("candidate", "evaluating"), "the gate's verdict", 300)
        self.assertTrue(decided)
        status, answer = server.call("/sluice/v1/decisions", {"action": "promote", "version": 1, "actor": "test", "note": ""})
        self.assertEqual(status, 400, answer)
        if self.state_of(server, 1) != "serving":
            status, answer = server.call("/sluice/v1/decisions", {"action": "promote", "version": 1, "actor": "test", "note": "try it"})
            self.assertEqual(status, 201, answer)
        self.assertEqual(server.chat("hello", 1)["sluice"]["version"], 1)
        status, answer = server.call("/sluice/v1/decisions", {"action": "rollback", "version": 0, "actor": "test", "note": "back"})
        self.assertEqual(status, 201, answer)
        self.assertEqual(server.chat("hello", 1)["sluice"]["version"], 0)
        status, _ = server.call("/v1/chat/completions", {"model": "be-brief@99", "messages": [{"role": "user", "content": "x"}]})
        self.assertEqual(status, 404)
        server.kill()
        again = Server(self.folder)
        self.assertEqual(again.call("/sluice/v1/status")[1]["serving"]["version"], 0)
        self.assertEqual(again.stop(), 0)
        checked = verify(self.folder)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    @staticmethod
    def versions(server):
        answer = server.call("/sluice/v1/adapters")[1]
        return answer.get("data", answer.get("versions", [])) if isinstance(answer, dict) else answer

    def state_of(self, server, version):
        with database(self.folder) as db:
            row = db.execute("select state from version where id = ?", (version,)).fetchone()
        return row[0] if row else "candidate"

    def test_a_second_program_is_told_to_stay_out(self):
        server = Server(self.folder)
        second = subprocess.run([PROGRAM, "serve", "--data", self.folder, "--model", MODEL, "--port", "0"], capture_output=True, text=True, timeout=60)
        self.assertEqual(second.returncode, 1)
        self.assertIn(self.folder, second.stderr)
        self.assertEqual(server.stop(), 0)

    def test_a_busy_port_is_named(self):
        server = Server(self.folder)
        port = server.url.rsplit(":", 1)[1]
        second = subprocess.run([PROGRAM, "serve", "--data", self.temp.name + "/other", "--model", MODEL, "--port", port], capture_output=True, text=True, timeout=60)
        self.assertEqual(second.returncode, 1)
        self.assertIn(port, second.stderr)
        self.assertEqual(server.stop(), 0)

    def test_wrong_usage_is_said(self):
        for words, code, text in ((["serve"], 2, "--data"), (["frobnicate"], 2, "frobnicate"), (["generate", "--prompt", "x", "--model", "/nowhere.gguf"], 1, "/nowhere.gguf"),
                                  (["verify", "--data", self.temp.name + "/none"], 1, "no workspace"), (["generate", "--max-tokens", "x", "--prompt", "y"], 2, "--max-tokens")):
            ran = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60)
            self.assertEqual(ran.returncode, code, ran.stderr)
            self.assertIn(text, ran.stderr)
        self.assertEqual(subprocess.run([PROGRAM, "--version"], capture_output=True).returncode, 0)
        self.assertEqual(subprocess.run([PROGRAM, "demo", "--help"], capture_output=True).returncode, 0)

    def test_json_lines_on_standard_output_are_nothing_else(self):
        for words, heading in ((["bench", "store"], "rows/s"), (["bench", "swap", "--model", MODEL], "from disk to visible"),
                               (["demo", "--data", self.temp.name + "/lines", "--model", MODEL, "--max-requests", "2"], "Workspace")):
            ran = subprocess.run([PROGRAM, *words, "--json", "-"], capture_output=True, text=True, timeout=300)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            events = [json.loads(line) for line in ran.stdout.splitlines()]
            self.assertTrue(events)
            for event in events:
                self.assertIn("t", event)
                self.assertGreaterEqual({"request", "step", "decision", "swap", "summary", "bench"}, {event["event"]})
                for field in ("candidate", "version"):
                    self.assertNotEqual(event.get(field), -1, "none is null")
            self.assertIn(heading, ran.stderr)

    def test_generate_prints_one_object(self):
        words = [PROGRAM, "generate", "--model", MODEL, "--prompt", "hello", "--max-tokens", "6", "--json", "--logprobs"]
        first = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        second = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        self.assertEqual(first["token_ids"], second["token_ids"])
        self.assertEqual(len(first["logprobs"]), len(first["token_ids"]))
        self.assertEqual(first["adapter"], "base")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
