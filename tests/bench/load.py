#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many clients at once: concurrent streams against a running server, or against one that it starts.

    load.py --url http://127.0.0.1:8080 [--key KEY]
    load.py --program build/release/bin/sluice-headless [--model FILE.gguf] [--threads 2]
            [--streams 64] [--requests N] [--prompt-words 32] [--max-tokens 64] [--max-stall 1.0] [--json FILE]
    load.py --program ... --data WORKSPACE --swap-every 1 --seconds 60 --streams 16

Every client asks, reads its stream to the end and asks again, until all requests are through. Prints one JSON object: errors, time to
the first token, tokens per second (of all streams, and of one), and the gaps between two tokens of a stream: median, 99th percentile,
largest. --swap-every S rolls back and forth between the versions that have served in a workspace (a finished demo's; a copy of it is
used), and tells how long a swap took from the request to its answer; a version that is not in memory is loaded for it. Standard library only, so that the client costs little beside the server. Exit 1 on an error or, where --max-stall is given, a
longer gap; without it no timing decides anything."""
import argparse
import asyncio
import json
import os
import platform
import random
import shutil
import statistics
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from sluice_server import Server, call  # noqa: E402

WORDS = ("river", "copper", "lamp", "seven", "garden", "engine", "paper", "quiet", "north", "valve", "window", "salt", "carry", "yellow",
         "bridge", "learn", "winter", "small", "table", "music")


class Stream:
    """One request: when its tokens came, and what went wrong."""

    def __init__(self):
        self.begin = time.monotonic()
        self.times, self.text, self.error, self.finish = [], "", "", None

    def take(self, data):
        if data == "[DONE]":
            return
        event = json.loads(data)
        if "error" in event:
            self.error = event["error"]["message"]
            return
        for choice in event.get("choices", []):
            piece = choice.get("text") or choice.get("delta", {}).get("content") or ""
            if piece:
                self.times.append(time.monotonic())
                self.text += piece
            self.finish = choice.get("finish_reason") or self.finish


async def read_head(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    return int(lines[0].split(" ")[1]), headers


async def chunks(reader, headers):
    if headers.get("transfer-encoding") != "chunked":
        yield await reader.readexactly(int(headers.get("content-length", 0)))
        return
    while size := int((await reader.readline()).strip() or b"0", 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()


async def ask(connection, place, body):
    """On an open connection; what is to be kept of it is the Stream."""
    reader, writer = connection
    stream = Stream()
    payload = json.dumps(body).encode()
    key = f"Authorization: Bearer {place.key}\r\n" if place.key else ""
    writer.write(f"POST {place.path} HTTP/1.1\r\nHost: {place.host}\r\nContent-Type: application/json\r\n{key}"
                 f"Content-Length: {len(payload)}\r\n\r\n".encode() + payload)
    await writer.drain()
    status, headers = await read_head(reader)
    rest = b""
    async for piece in chunks(reader, headers):
        rest += piece
        if status != 200:
            continue
        *events, rest = rest.split(b"\n\n")
        for event in events:
            for line in event.split(b"\n"):
                if line.startswith(b"data: "):
                    stream.take(line[6:].decode())
    if status != 200:
        stream.error = f"{status} {rest.decode(errors='replace')[:300]}"
    elif not stream.error and stream.finish is None:
        stream.error = "the stream ended without a finish reason"
    return stream


class Place:
    def __init__(self, url, key, chat):
        parts = urllib.parse.urlsplit(url)
        self.address, self.port, self.key = parts.hostname, parts.port or 80, key
        self.host = parts.netloc
        self.path = "/v1/chat/completions" if chat else "/v1/completions"


def body_of(args, number):
    rng = random.Random(args.seed * 1_000_003 + number)
    text = " ".join(rng.choice(WORDS) for _ in range(args.prompt_words))
    body = {"stream": True, "max_tokens": args.max_tokens, "temperature": args.temperature, "seed": number, "ignore_eos": args.ignore_eos}
    if args.model_name:
        body["model"] = args.model_name
    if args.completions:
        return body | {"prompt": text}
    return body | {"messages": [{"role": "user", "content": text}]}


async def client(args, place, numbers, out, until):
    connection = None
    for number in numbers:
        if until is not None and time.monotonic() >= until:
            break
        try:
            if connection is None:
                connection = await asyncio.open_connection(place.address, place.port)
            stream = await ask(connection, place, body_of(args, number))
        except (OSError, EOFError, ValueError) as error:
            stream = Stream()
            stream.error = f"{type(error).__name__}: {error}"
        if stream.error and connection is not None:
            connection[1].close()
            connection = None
        out.append(stream)
    if connection is not None:
        connection[1].close()


def quantiles(values):
    if not values:
        return None
    ordered = sorted(values)
    at = lambda q: ordered[min(len(ordered) - 1, int(q * len(ordered)))]
    return {"p50": round(at(0.5), 4), "p99": round(at(0.99), 4), "max": round(ordered[-1], 4)}


async def swap(args, url, out, until):
    """Decisions in turn until `until`: each must be taken, each changes what serves."""
    head = {"Authorization": f"Bearer {args.key}"} if args.key else {}
    status, listed = await asyncio.to_thread(call, url, "/sluice/v1/adapters", None, None, head)
    served = [v["version"] for v in listed["data"] if v["state"] in ("serving", "retired")]
    if len(served) < 2:
        raise RuntimeError("--swap-every needs a workspace in which two versions, the base included, have served")
    serving = listed["serving"]
    while time.monotonic() < until:
        target = served[(served.index(serving) + 1) % len(served)]
        begin = time.monotonic()
        body = {"action": "rollback", "version": target, "actor": "load.py", "note": "load"}
        status, answer = await asyncio.to_thread(call, url, "/sluice/v1/decisions", body, None, head)
        if status != 201:
            raise RuntimeError(f"a swap was refused: {status} {answer}")
        out.append(time.monotonic() - begin)
        serving = target
        await asyncio.sleep(max(0, begin + args.swap_every - time.monotonic()))


def report(args, streams, swaps, seconds):
    good = [s for s in streams if not s.error]
    gaps = [b - a for s in good for a, b in zip(s.times, s.times[1:])]
    tokens = sum(len(s.times) for s in good)
    own = [(len(s.times) - 1) / (s.times[-1] - s.times[0]) for s in good if len(s.times) > 1 and s.times[-1] > s.times[0]]
    errors = {}
    for s in streams:
        if s.error:
            errors[s.error] = errors.get(s.error, 0) + 1
    return {"streams": args.streams, "requests": len(streams), "prompt_words": args.prompt_words, "max_tokens": args.max_tokens,
            "errors": sum(errors.values()), "error_texts": errors, "seconds": round(seconds, 3), "tokens": tokens,
            "tokens_per_s": round(tokens / seconds, 2) if seconds > 0 else None,
            "tokens_per_s_of_one_stream": round(statistics.median(own), 2) if own else None,
            "time_to_first_token_s": quantiles([s.times[0] - s.begin for s in good if s.times]),
            "swaps": len(swaps), "swap_s": quantiles(swaps),
            "gap_s": quantiles(gaps), "request_s": quantiles([s.times[-1] - s.begin for s in good if s.times]),
            "cpu": platform.processor() or platform.machine(), "cores": os.cpu_count()}


async def run(args, place):
    out, swaps = [], []
    begin = time.monotonic()
    until = begin + args.seconds if args.seconds else None
    tasks = [client(args, place, range(i, args.requests, args.streams), out, until) for i in range(args.streams)]
    if args.swap_every:
        tasks.append(swap(args, f"http://{place.host}", swaps, until))
    await asyncio.gather(*tasks)
    return report(args, out, swaps, time.monotonic() - begin)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--key", default="")
    parser.add_argument("--program")
    parser.add_argument("--model", help="a GGUF file for --program")
    parser.add_argument("--model-name", default="", help="the model field of the requests")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--requests", type=int, default=0, help="default: two a stream; as many as fit into --seconds")
    parser.add_argument("--seconds", type=float, default=0, help="no request begins later")
    parser.add_argument("--data", help="a workspace for --program; a copy is used")
    parser.add_argument("--swap-every", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--prompt-words", type=int, default=32)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--temperature", type=float, default=1)
    parser.add_argument("--ignore-eos", action="store_true", help="every answer has --max-tokens tokens")
    parser.add_argument("--completions", action="store_true", help="text completions instead of chat")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-stall", type=float, help="fail on a longer gap between two tokens of a stream")
    parser.add_argument("--json", help="write the report there too")
    args = parser.parse_args()
    if bool(args.url) == bool(args.program):
        parser.error("give --url or --program")
    if args.swap_every and not args.seconds:
        parser.error("--swap-every needs --seconds")
    args.requests = args.requests or (sys.maxsize if args.seconds else 2 * args.streams)
    return args


def main():
    args = arguments()
    folder = tempfile.TemporaryDirectory()
    workspace = folder.name + "/workspace"
    if args.data:
        shutil.copytree(args.data, workspace)
    server = Server(args.program, workspace, "--threads", str(args.threads), model=args.model) if args.program else None
    try:
        result = asyncio.run(run(args, Place(server.url if server else args.url, args.key, not args.completions)))
    finally:
        if server:
            server.stop()
        folder.cleanup()
    print(json.dumps(result, indent=1))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file)
    stalled = args.max_stall is not None and result["gap_s"] and result["gap_s"]["max"] > args.max_stall
    sys.exit(1 if result["errors"] or stalled else 0)


if __name__ == "__main__":
    main()
