#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Speaks to a running Sluice through the unmodified `openai` package, as any client would.

  openai_client_test.py --url http://127.0.0.1:8080 [--key KEY]
  openai_client_test.py --binary build/release/bin/sluice-headless [--model PATH]

With --binary it starts `sluice-headless serve` on a free port in a folder of its own, and stops it at the end.
Needs: pip install openai. Exit 0 when every check passed.
"""
import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from sluice_server import Server, call  # noqa: E402

QUESTION = [{"role": "user", "content": "Say in one short sentence what a valve does."}]


class Checks:
    def __init__(self, url, key):
        self.url, self.key = url, key
        self.client = openai.OpenAI(base_url=url + "/v1", api_key=key or "none", max_retries=0, timeout=300)
        self.model = self.client.models.list().data[0].id

    def call(self, path, body=None):
        return call(self.url, path, body, headers={"Authorization": "Bearer " + self.key} if self.key else None)

    def models(self):
        listed = self.client.models.list().data
        assert listed and all(m.object == "model" and m.created is not None for m in listed)
        assert self.client.models.retrieve(self.model).id == self.model
        try:
            self.client.models.retrieve("no-such-model")
            raise AssertionError("an unknown model was found")
        except openai.NotFoundError as error:
            assert error.code == "model_not_found"

    def chat(self):
        raw = self.client.chat.completions.with_raw_response.create(
            model=self.model, messages=QUESTION, max_tokens=24, temperature=0)
        answer = raw.parse()
        assert answer.choices[0].message.role == "assistant" and answer.choices[0].message.content
        assert answer.choices[0].finish_reason in ("stop", "length")
        assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
        assert raw.headers["X-Sluice-Record-Id"] == answer.model_extra["sluice"]["record_id"]
        return answer

    def chat_stream_equals(self):
        whole = self.chat().choices[0].message.content
        text, finish, usage, receipt = "", None, None, None
        for chunk in self.client.chat.completions.create(model=self.model, messages=QUESTION, max_tokens=24, temperature=0,
                                                         stream=True, stream_options={"include_usage": True}):
            if not chunk.choices:
                usage = chunk.usage
                continue
            text += chunk.choices[0].delta.content or ""
            if chunk.choices[0].finish_reason:
                finish, receipt = chunk.choices[0].finish_reason, chunk.model_extra["sluice"]
        assert text == whole, (text, whole)
        assert finish and receipt["record_id"] and usage.completion_tokens > 0

    def completions(self):
        answer = self.client.completions.create(model=self.model, prompt=["One, two, three,", "Red, green,"], max_tokens=8,
                                                temperature=0, n=1, logprobs=2)
        assert [c.index for c in answer.choices] == [0, 1]
        lists = answer.choices[0].logprobs
        assert len(lists.tokens) == len(lists.token_logprobs) == len(lists.text_offset)
        scored = self.client.completions.create(model=self.model, prompt="One, two, three", max_tokens=0, echo=True, logprobs=0)
        assert scored.choices[0].text == "One, two, three" and scored.choices[0].finish_reason == "length"
        assert scored.choices[0].logprobs.token_logprobs[0] is None
        assert all(v <= 0 for v in scored.choices[0].logprobs.token_logprobs[1:])
        streamed = "".join(c.choices[0].text for c in self.client.completions.create(
            model=self.model, prompt="One, two, three,", max_tokens=8, temperature=0, stream=True))
        assert streamed == answer.choices[0].text

    def choices_and_seed(self):
        ask = dict(model=self.model, messages=QUESTION, max_tokens=12, temperature=1, n=2, seed=11)
        a, b = (self.client.chat.completions.create(**ask) for _ in range(2))
        assert [c.message.content for c in a.choices] == [c.message.content for c in b.choices]

    def stop_string(self):
        answer = self.client.completions.create(model=self.model, prompt="1 2 3 4 5", max_tokens=24, temperature=0)
        text = answer.choices[0].text
        if len(text) < 6:
            return
        stop = text[3:6]
        cut = self.client.completions.create(model=self.model, prompt="1 2 3 4 5", max_tokens=24, temperature=0, stop=[stop])
        assert cut.choices[0].text == text[:text.index(stop)] and cut.choices[0].finish_reason == "stop"

    def chat_logprobs(self):
        answer = self.client.chat.completions.create(model=self.model, messages=QUESTION, max_tokens=4, temperature=0,
                                                     logprobs=True, top_logprobs=3)
        for token in answer.choices[0].logprobs.content:
            assert token.logprob <= 0 and len(token.top_logprobs) == 3

    def chat_logprobs_streamed(self):
        ask = dict(model=self.model, messages=QUESTION, max_tokens=6, temperature=0, logprobs=True, top_logprobs=2)
        whole = self.client.chat.completions.create(**ask).choices[0].logprobs.content
        joined = []
        for chunk in self.client.chat.completions.create(stream=True, **ask):
            choice = chunk.choices[0]
            if choice.logprobs and choice.logprobs.content:
                joined += choice.logprobs.content
            else:
                assert not choice.delta.content, "text without its log-probs"
        assert [t.token for t in joined] == [t.token for t in whole] and len(joined) > 0

    def several_choices(self):
        ask = dict(model=self.model, messages=QUESTION, max_tokens=8, temperature=1, n=3, seed=5)
        whole = self.client.chat.completions.create(**ask)
        assert [c.index for c in whole.choices] == [0, 1, 2]
        texts, ends, usage = {0: "", 1: "", 2: ""}, {}, None
        for chunk in self.client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **ask):
            for choice in chunk.choices:
                texts[choice.index] += choice.delta.content or ""
                if choice.finish_reason:
                    assert choice.index not in ends
                    ends[choice.index] = choice.finish_reason
            usage = chunk.usage or usage
        assert [texts[i] for i in range(3)] == [c.message.content for c in whole.choices]
        assert ends == {c.index: c.finish_reason for c in whole.choices}
        assert usage.prompt_tokens == whole.usage.prompt_tokens and usage.completion_tokens == whole.usage.completion_tokens
        lists = self.client.completions.create(model=self.model, prompt=[[1, 2, 3], [4, 5]], max_tokens=2, temperature=1, n=2)
        assert [c.index for c in lists.choices] == [0, 1, 2, 3]

    def usage_only_when_asked(self):
        ask = dict(model=self.model, messages=QUESTION, max_tokens=4, temperature=0, stream=True)
        assert all(chunk.usage is None and chunk.choices for chunk in self.client.chat.completions.create(**ask))
        chunks = list(self.client.chat.completions.create(stream_options={"include_usage": True}, **ask))
        assert [bool(c.usage) for c in chunks] == [False] * (len(chunks) - 1) + [True] and not chunks[-1].choices

    def seeds(self):
        ask = dict(model=self.model, prompt="Once upon a time", max_tokens=16, temperature=1)
        a, b, c = (self.client.completions.create(seed=seed, **ask) for seed in (3, 3, 4))
        assert a.choices[0].text == b.choices[0].text and a.model_extra["sluice"]["seed"] == 3
        assert a.choices[0].text != c.choices[0].text
        drawn = self.client.completions.create(**ask).model_extra["sluice"]["seed"]
        assert isinstance(drawn, int)

    def tools(self):
        tool = {"type": "function", "function": {"name": "weather", "description": "The weather of a city",
                                                 "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
        ask = dict(model=self.model, messages=QUESTION, max_tokens=8, temperature=0, tools=[tool])
        try:
            answer = self.client.chat.completions.create(**ask)
        except openai.BadRequestError as error:  # the model's template has no place for tools
            assert error.code == "unsupported_parameter" and error.param == "tools", error
            return
        assert answer.choices[0].finish_reason in ("stop", "length", "tool_calls")
        messages = QUESTION + [
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Bern\"}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}]
        assert self.client.chat.completions.create(**{**ask, "messages": messages}).choices
        for choice in ("auto", "none"):
            assert self.client.chat.completions.create(tool_choice=choice, **ask).choices
        try:
            self.client.chat.completions.create(tool_choice="required", **ask)
            raise AssertionError("tool_choice required was accepted")
        except openai.BadRequestError as error:
            assert error.code == "unsupported_parameter" and error.param == "tool_choice"

    def errors(self):
        for change, error_type in (({"model": "no-such-model"}, openai.NotFoundError),
                                   ({"temperature": 3}, openai.BadRequestError),
                                   ({"messages": []}, openai.BadRequestError),
                                   ({"messages": [{"role": "user", "content": "word " * 100000}]}, openai.BadRequestError)):
            ask = dict(model=self.model, messages=QUESTION, max_tokens=4)
            ask.update(change)
            try:
                self.client.chat.completions.create(**ask)
                raise AssertionError(f"{list(change)} was accepted")
            except error_type as error:
                assert error.code and error.type, error

    def feedback(self):
        receipt = self.chat().model_extra["sluice"]["record_id"]
        label = {"record_id": receipt, "kind": "accept", "key": receipt}
        status, first = self.call("/sluice/v1/feedback", label)
        assert status == 200 and first["state"] in ("waiting", "held_out", "ignored", "late"), first
        status, again = self.call("/sluice/v1/feedback", label)
        assert status == 200 and again["state"] == "duplicate" and again["feedback_id"] == first["feedback_id"]
        status, other = self.call("/sluice/v1/feedback", {**label, "kind": "reject"})
        assert status == 409 and other["error"]["code"] == "idempotency_conflict"
        status, record = self.call(f"/sluice/v1/records/{receipt}")
        assert status == 200 and len(record["lp_full"]) == len(record["token_ids"])
        assert self.call("/sluice/v1/feedback", {"record_id": "rec_none", "kind": "accept"})[0] == 404

    def early_leave(self):
        stream = self.client.chat.completions.create(model=self.model, messages=QUESTION, max_tokens=200, stream=True)
        next(iter(stream))
        stream.close()
        assert self.chat().choices[0].message.content

    def many_at_once(self):
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda _: self.chat().choices[0].message.content, range(24)))
        assert len(set(answers)) == 1, set(answers)  # greedy: alone or together, the same


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--key")
    parser.add_argument("--binary")
    parser.add_argument("--model")
    options = parser.parse_args()
    if not options.url and not options.binary:
        parser.error("give --url or --binary")
    folder = tempfile.TemporaryDirectory()
    server = Server(options.binary, folder.name + "/ws", model=options.model) if options.binary else None
    failed = 0
    try:
        checks = Checks(server.url if server else options.url, options.key)
        for name in ("models", "chat", "chat_stream_equals", "completions", "choices_and_seed", "stop_string", "chat_logprobs",
                     "chat_logprobs_streamed", "several_choices", "usage_only_when_asked", "seeds", "tools", "errors", "feedback", "early_leave", "many_at_once"):
            try:
                getattr(checks, name)()
                print("ok  ", name, flush=True)
            except Exception as error:  # each check is told, then the next runs
                failed += 1
                print("FAIL", name, type(error).__name__, error, flush=True)
    finally:
        if server:
            server.stop()
        folder.cleanup()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
