#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What clients.sh runs: each library does what its users do with it, through its own API, against a server started here. The libraries'
answers are compared with each other and with plain HTTP; what they can't read they raise."""
import argparse
import asyncio
import math
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import sluice_server  # noqa: E402

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no look-up on the net
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("LITELLM_LOG", "ERROR")

QUESTION = [{"role": "system", "content": "You answer briefly."}, {"role": "user", "content": "Name one colour of the sky."}]


class Server(sluice_server.Server):
    def __init__(self, args, folder):
        super().__init__(args.program, folder, model=args.model)
        self.v1 = self.url + "/v1"
        self.model = self.good("/v1/models")["data"][0]["id"]

    def good(self, path, body=None):
        status, answer = self.call(path, body)
        expect(status == 200, f"{path}: {status} {answer}")
        return answer


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def near(a, b, what, tolerance=2e-3):
    expect(abs(a - b) <= tolerance, f"{what}: {a} against {b}")


# ---- openai ----
def openai_chat(server):
    import openai
    client = openai.OpenAI(base_url=server.v1, api_key="none", max_retries=0)
    expect(server.model in [m.id for m in client.models.list()], "the model list lacks the default")
    whole = client.chat.completions.create(model=server.model, messages=QUESTION, temperature=0, max_completion_tokens=24, logprobs=True,
                                           top_logprobs=2)
    expect(whole.choices[0].finish_reason in ("stop", "length"), whole.choices[0].finish_reason)
    expect(len(whole.choices[0].logprobs.content) == whole.usage.completion_tokens, "one log-prob a token")
    text, usage = "", None
    for chunk in client.chat.completions.create(model=server.model, messages=QUESTION, temperature=0, max_completion_tokens=24, stream=True,
                                                stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
    expect(text == whole.choices[0].message.content, f"streamed {text!r} is not {whole.choices[0].message.content!r}")
    expect(usage.total_tokens == whole.usage.total_tokens, "usage of the stream")
    raw = client.chat.completions.with_raw_response.create(model=server.model, messages=QUESTION, max_tokens=4)
    record = raw.headers["X-Sluice-Record-Id"]
    label = client.post("/../sluice/v1/feedback", cast_to=object, body={"record_id": record, "kind": "accept"})
    expect(label["record_id"] == record, "feedback through the client")
    several = client.chat.completions.create(model=server.model, messages=QUESTION, n=3, temperature=1, seed=5, max_tokens=8)
    expect([c.index for c in several.choices] == [0, 1, 2], "three choices")


def openai_errors(server):
    import openai
    client = openai.OpenAI(base_url=server.v1, api_key="none", max_retries=0)
    for kind, call in ((openai.NotFoundError, lambda: client.chat.completions.create(model="nobody", messages=QUESTION)),
                       (openai.BadRequestError, lambda: client.chat.completions.create(model=server.model, messages=QUESTION, temperature=3)),
                       (openai.BadRequestError, lambda: client.completions.create(model=server.model, prompt="word " * 40000))):
        try:
            call()
        except kind as error:
            expect(error.body and error.body.get("message"), "an error without a message")
        else:
            raise AssertionError(f"{kind.__name__} was not raised")


def openai_async(server):
    import openai

    async def go():
        async with openai.AsyncOpenAI(base_url=server.v1, api_key="none", max_retries=0) as client:
            async def one(i):
                parts = []
                stream = await client.completions.create(model=server.model, prompt=f"{i} is", max_tokens=12, stream=True, seed=i)
                async for chunk in stream:
                    parts += [c.text for c in chunk.choices]
                return "".join(parts)
            return await asyncio.gather(*(one(i) for i in range(8)))
    expect(all(asyncio.run(go())), "an empty answer among eight streams")


# ---- litellm ----
def litellm_chat(server):
    import litellm
    common = dict(model="openai/" + server.model, api_base=server.v1, api_key="none", messages=QUESTION, temperature=0, max_tokens=24)
    whole = litellm.completion(**common)
    expect(whole.usage.completion_tokens > 0, "no usage")
    chunks = list(litellm.completion(stream=True, stream_options={"include_usage": True}, **common))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    expect(text == whole.choices[0].message.content, f"streamed {text!r} is not {whole.choices[0].message.content!r}")
    rebuilt = litellm.stream_chunk_builder(chunks, messages=QUESTION)
    expect(rebuilt.choices[0].message.content == text, "litellm rebuilds the stream")
    try:
        litellm.completion(**(common | {"messages": [{"role": "user", "content": "word " * 40000}]}))
    except litellm.ContextWindowExceededError:
        pass
    else:
        raise AssertionError("a prompt longer than the context was answered")
    try:
        litellm.completion(**(common | {"model": "openai/nobody"}))
    except litellm.NotFoundError:
        pass
    else:
        raise AssertionError("an unknown model was answered")


def litellm_text(server):
    import litellm
    answer = litellm.text_completion(model="text-completion-openai/" + server.model, api_base=server.v1, api_key="none",
                                     prompt="The sky is", max_tokens=8, temperature=0)
    expect(answer.choices[0].text, "an empty completion")


# ---- langchain ----
def langchain_chat(server):
    from langchain_core.messages import HumanMessage, SystemMessage
    from langchain_openai import ChatOpenAI
    chat = ChatOpenAI(base_url=server.v1, api_key="none", model=server.model, temperature=0, max_tokens=24, max_retries=0)
    messages = [SystemMessage(QUESTION[0]["content"]), HumanMessage(QUESTION[1]["content"])]
    whole = chat.invoke(messages)
    expect(whole.usage_metadata["output_tokens"] > 0, "no usage")
    total = None
    for chunk in ChatOpenAI(base_url=server.v1, api_key="none", model=server.model, temperature=0, max_tokens=24, max_retries=0,
                            stream_usage=True).stream(messages):
        total = chunk if total is None else total + chunk
    expect(total.content == whole.content, f"streamed {total.content!r} is not {whole.content!r}")
    expect(total.usage_metadata == whole.usage_metadata or total.usage_metadata["total_tokens"] == whole.usage_metadata["total_tokens"],
           "usage of the stream")
    many = chat.batch([[HumanMessage(f"Count to {i}.")] for i in range(4)])
    expect(len(many) == 4 and all(m.response_metadata["finish_reason"] for m in many), "a batch")
    scored = chat.bind(logprobs=True, top_logprobs=2).invoke(messages)
    expect(scored.response_metadata["logprobs"]["content"], "log-probs")


def langchain_text(server):
    from langchain_openai import OpenAI
    llm = OpenAI(base_url=server.v1, api_key="none", model=server.model, temperature=0, max_tokens=12, max_retries=0)
    whole = llm.invoke("The sky is")
    expect("".join(llm.stream("The sky is")) == whole, "streamed and whole differ")
    expect(len(llm.generate(["One", "Two", "Three"]).generations) == 3, "three prompts in one request")


# ---- lm-eval ----
class BytePieces:
    """What lm-eval needs of a tokenizer, from the server itself: no second copy of the model's."""

    def __init__(self, server):
        self.server, self.eos_token_id, self.bos_token_id, self.eos_token, self.pad_token_id = server, 0, None, "", 0

    def encode(self, text, add_special_tokens=False, **_):
        answer = self.server.good("/v1/completions", {"prompt": text, "max_tokens": 0, "return_token_ids": True, "temperature": 0,
                                                      "add_special_tokens": add_special_tokens})
        return answer["choices"][0].get("prompt_token_ids") or answer["prompt_token_ids"]

    def __call__(self, texts, add_special_tokens=False, **_):
        class Encoded:
            input_ids = [self.encode(t, add_special_tokens) for t in ([texts] if isinstance(texts, str) else texts)]
        if isinstance(texts, str):
            Encoded.input_ids = Encoded.input_ids[0]
        return Encoded


def harness(server, **more):
    from lm_eval.models.openai_completions import LocalCompletionsAPI
    return LocalCompletionsAPI(model=server.model, base_url=server.v1 + "/completions", tokenizer_backend=None, tokenized_requests=False,
                               max_retries=1, **more)


def lm_eval_loglikelihood(server):
    model = harness(server, max_length=1024)
    model.tokenizer_backend = "huggingface"
    model.tokenizer = BytePieces(server)
    model.tokenized_requests = True
    from lm_eval.api.instance import Instance
    pairs = [("The capital of France is", " Paris"), ("The capital of France is", " banana"), ("Two plus two is", " four")]
    requests = [Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=i) for i, pair in enumerate(pairs)]
    got = model.loglikelihood(requests)
    for (context, continuation), (value, _) in zip(pairs, got):
        ids = model.tokenizer.encode(context), model.tokenizer.encode(context + continuation)
        whole = server.good("/v1/completions", {"prompt": ids[1], "max_tokens": 0, "echo": True, "logprobs": 1, "temperature": 0})
        direct = sum(whole["choices"][0]["logprobs"]["token_logprobs"][len(ids[0]):])
        expect(math.isfinite(value) and value < 0, f"log-likelihood {value}")
        near(value, direct, f"{context}{continuation}")
    return got


def lm_eval_generate(server):
    model = harness(server)
    from lm_eval.api.instance import Instance
    arguments = [("The sky is", {"until": ["\n"], "max_gen_toks": 16, "temperature": 0}), ("One, two,", {"until": [" six"], "max_gen_toks": 16})]
    got = model.generate_until([Instance(request_type="generate_until", doc={}, arguments=a, idx=i) for i, a in enumerate(arguments)])
    expect(len(got) == 2 and all(isinstance(t, str) for t in got), "two texts")
    expect("\n" not in got[0], "the stop string stands in the text")


CHECKS = (openai_chat, openai_errors, openai_async, litellm_chat, litellm_text, langchain_chat, langchain_text, lm_eval_loglikelihood,
          lm_eval_generate)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--model")
    parser.add_argument("--only", help="names of checks, comma between")
    args = parser.parse_args()
    folder = tempfile.TemporaryDirectory()
    server = Server(args, folder.name)
    failed = []
    try:
        for check in CHECKS:
            if args.only and check.__name__ not in args.only.split(","):
                continue
            begin = time.monotonic()
            try:
                check(server)
            except Exception:
                failed.append(check.__name__)
                traceback.print_exc()
            print(f"{'FAILED' if check.__name__ in failed else 'ok    '} {check.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
    finally:
        code = server.stop()
        folder.cleanup()
    if code != 0:
        failed.append(f"the server ended with {code}")
    print("failed: " + ", ".join(failed) if failed else "every check passed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
