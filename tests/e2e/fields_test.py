#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of the completion routes on a real process and a real, tiny model: what only a model can show (penalties, bias,
log-probs, seeds, batches), over real sockets.

    fields_test.py SLUICE_HEADLESS MODEL.gguf

Standard library only. Exit 0 when every check passed."""
import json
import math
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from sluice_server import Server  # noqa: E402

PROGRAM, MODEL = sys.argv[1:3]


class FieldsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = Server(PROGRAM, cls.folder.name + "/ws", model=MODEL, stderr=subprocess.PIPE)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.folder.cleanup()

    def call(self, path, body):
        return self.server.call(path, body)

    def text(self, **fields):
        body = {"prompt": "Hello there", "max_tokens": 12, "temperature": 0, "ignore_eos": True, **fields}
        status, answer = self.call("/v1/completions", body)
        self.assertEqual(status, 200, answer)
        return answer

    def tokens(self, **fields):
        return self.text(return_token_ids=True, **fields)["choices"][0]["token_ids"]

    def events(self, path, body):
        request = urllib.request.Request(self.server.url + path, data=json.dumps({**body, "stream": True}).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            events = answer.read().decode().split("\n\n")
        self.assertEqual(events[-2:], ["data: [DONE]", ""])
        return [json.loads(event[len("data: "):]) for event in events[:-2]]

    def test_SMP1_SMP4_greedy_is_argmax_and_has_real_logprobs(self):
        lists = self.text(logprobs=5)["choices"][0]["logprobs"]
        for value, top in zip(lists["token_logprobs"], lists["top_logprobs"]):
            self.assertLess(value, 0)
            self.assertAlmostEqual(value, max(top.values()), places=6)
        _, chat = self.call("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4,
                                                     "temperature": 0, "logprobs": True, "top_logprobs": 3})
        for token in chat["choices"][0]["logprobs"]["content"]:
            self.assertAlmostEqual(token["logprob"], token["top_logprobs"][0]["logprob"], places=6)
            self.assertEqual(len(token["top_logprobs"]), 3)

    def test_logprobs_are_of_the_unmodified_logits(self):
        plain = self.text(max_tokens=1, logprobs=20)["choices"][0]["logprobs"]["top_logprobs"][0]
        bent = self.text(max_tokens=1, logprobs=20, temperature=1.7, top_k=2, presence_penalty=1.5, seed=3)
        for token, value in bent["choices"][0]["logprobs"]["top_logprobs"][0].items():
            if token in plain:
                self.assertAlmostEqual(value, plain[token], places=3)

    def test_SMP3_top_k_off_and_one(self):
        drawn = self.tokens(temperature=1, seed=5)
        for k in (0, -1, 10**6):
            self.assertEqual(self.tokens(temperature=1, seed=5, top_k=k), drawn)
        self.assertEqual(self.tokens(temperature=1, seed=5, top_k=1), self.tokens())
        self.assertEqual(self.tokens(temperature=1, seed=5, top_p=0), self.tokens())
        self.assertEqual(self.tokens(temperature=1, seed=5, min_p=1), self.tokens())

    def test_SMP5_logit_bias(self):
        greedy = self.tokens()
        banned = self.tokens(logit_bias={str(greedy[0]): -100})
        self.assertNotEqual(banned[0], greedy[0])
        self.assertEqual(set(self.tokens(logit_bias={str(banned[0]): 100})), {banned[0]})
        for key in ("-1", "99999999"):
            status, answer = self.call("/v1/completions", {"prompt": "x", "logit_bias": {key: 1}})
            self.assertEqual((status, answer["error"]["param"]), (400, "logit_bias"))
        self.assertEqual(self.tokens(), greedy)

    def test_SMP6_same_seed_same_text_on_every_slot(self):
        ask = dict(temperature=1, seed=77, max_tokens=24)
        alone = self.tokens(**ask)
        with ThreadPoolExecutor(12) as pool:
            self.assertEqual([t for t in pool.map(lambda _: self.tokens(**ask), range(24)) if t != alone], [])
        self.assertNotEqual(self.tokens(temperature=1, seed=78, max_tokens=24), alone)
        two = self.text(n=2, return_token_ids=True, **ask)["choices"]
        self.assertEqual(two[0]["token_ids"], alone)
        self.assertEqual(two[1]["token_ids"], self.tokens(temperature=1, seed=78, max_tokens=24))

    def test_SMP8_which_penalty_counts_what(self):
        first = self.tokens(max_tokens=1)[0]
        prompt = self.text(max_tokens=0, return_token_ids=True)["choices"][0]["prompt_token_ids"] + [first]
        before = self.tokens(prompt=prompt, max_tokens=1)
        again = prompt + before  # the next token's prompt holds `before`
        likely = self.tokens(prompt=again, max_tokens=1)[0]
        for field in ("presence_penalty", "frequency_penalty"):
            self.assertEqual(self.tokens(prompt=again, max_tokens=1, **{field: 2})[0], likely, field)
        repeated = [likely] * 8 + again  # what is likely stands in the prompt: only this penalty sees it
        with_it = self.text(prompt=repeated, max_tokens=1, logprobs=1, repetition_penalty=10)
        self.assertLess(with_it["choices"][0]["logprobs"]["token_logprobs"][0], 0)
        forced = {"logit_bias": {str(likely): 30}, "max_tokens": 6}
        self.assertEqual(set(self.tokens(**forced)), {likely})
        self.assertEqual(len(set(self.tokens(**{**forced, "logit_bias": {str(likely): 1}, "frequency_penalty": 2}))) > 1, True)

    def test_SMP9_repetition_penalty_in_odd_batches(self):
        with ThreadPoolExecutor(20) as pool:
            answers = pool.map(lambda i: self.call("/v1/completions", {"prompt": [65 + i], "repetition_penalty": 1.3,
                                                                       "temperature": i % 2, "max_tokens": 8}), range(20))
        self.assertEqual({status for status, _ in answers}, {200})

    def test_SMP10_huge_counts(self):
        self.assertEqual(self.call("/v1/completions", {"prompt": "x", "n": 10**9})[0], 400)
        answer = self.text(max_tokens=2**63 - 1)
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")

    def test_SMP12_greedy_alone_and_among_seven(self):
        ask = dict(max_tokens=24)
        alone = self.tokens(**ask)
        others = [dict(prompt=f"Another text number {i} of some length", max_tokens=40, temperature=1) for i in range(7)]
        with ThreadPoolExecutor(8) as pool:
            running = [pool.submit(self.text, **other) for other in others]
            self.assertEqual(self.tokens(**ask), alone)
            for one in running:
                one.result()

    def test_PRO8_scoring_agrees_with_generation(self):
        answer = self.text(logprobs=0, return_token_ids=True)["choices"][0]
        whole = answer["prompt_token_ids"] + answer["token_ids"]
        for budget in (0, 1):
            scored = self.text(prompt=[whole], max_tokens=budget, echo=True, logprobs=1)["choices"][0]["logprobs"]
            values = scored["token_logprobs"]
            self.assertIsNone(values[0])
            self.assertEqual(len(values), len(whole) + budget)
            for a, b in zip(values[len(answer["prompt_token_ids"]):], answer["logprobs"]["token_logprobs"]):
                self.assertTrue(math.isclose(a, b, abs_tol=2e-3), (a, b))

    def test_streams_join_to_the_whole(self):
        body = {"messages": [{"role": "user", "content": "Tell me"}], "max_tokens": 30, "temperature": 1, "seed": 4, "n": 3,
                "stream_options": {"include_usage": True}}
        chunks = self.events("/v1/chat/completions", body)
        whole = self.call("/v1/chat/completions", {k: v for k, v in body.items() if k != "stream_options"})[1]
        for choice in whole["choices"]:
            parts = [c["choices"][0]["delta"].get("content", "") for c in chunks
                     if c["choices"] and c["choices"][0]["index"] == choice["index"]]
            self.assertEqual("".join(parts), choice["message"]["content"])
        self.assertEqual(chunks[-1]["usage"]["completion_tokens"], whole["usage"]["completion_tokens"])

    def test_prompt_lists(self):
        prompts = [f"Prompt {i}" for i in range(64)]
        answer = self.text(prompt=prompts, max_tokens=4, n=2)
        self.assertEqual([c["index"] for c in answer["choices"]], list(range(128)))
        for i in (0, 31, 63):
            alone = self.text(prompt=prompts[i], max_tokens=4)["choices"][0]["text"]
            self.assertEqual([answer["choices"][2 * i + k]["text"] for k in (0, 1)], [alone, alone])
        self.assertEqual(self.call("/v1/completions", {"prompt": prompts + ["x"]})[0], 400)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
