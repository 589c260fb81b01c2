#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What real_templates.sh runs: real_templates.py RENDER_TEMPLATE FOLDER_OF_TEMPLATES [--show NAME]

Every template renders every conversation below with and without the opening of the next turn. What jinja2 renders we must render to the
same text, and what it refuses we must refuse. A template that needs what our interpreter lacks must say so: the error is listed in LACKS.
The families that the program runs (FAMILIES) may lack nothing."""
import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))
from hf_jinja import NOW, environment  # noqa: E402

FAMILIES = ("Qwen", "meta-llama", "meetkai", "fireworks-ai-llama", "NousResearch-Hermes", "deepseek-ai-DeepSeek-R1-Distill", "HuggingFaceTB",
            "google-gemma-2", "mistralai-Mistral")

# Template -> words of the error that says what is lacking.
LACKS = {
    # jinja2 has no such filter either, but says so only where one is used: chats without tool calls render there.
    "deepseek-ai-DeepSeek-V3.2": 'the filter "from_json" is unknown',
    "deepseek-ai-DeepSeek-V4": 'the filter "from_json" is unknown',
    "deepseek-ai-DeepSeek-V4-Flash-0731": 'the filter "from_json" is unknown',
    "tencent-Hy3": "a str has no method format() here",
}
# Templates of which we render what jinja2 refuses: it can't write what `map` made as JSON, for us that is a list.
MORE = ("llama-cpp-deepseek-r1",)

WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a place, \"today\" <or> later.", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "description": "Name of the place"}, "days": {"type": "integer"},
                                     "unit": {"type": "string", "enum": ["C", "F"]}}, "required": ["place"]}}}
CLOCK = {"type": "function", "function": {"name": "clock", "description": "The time.", "parameters": {"type": "object", "properties": {}}}}


def call(arguments, name="get_weather", id_="call12345"):
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


SYSTEM = {"role": "system", "content": "You answer briefly."}
ASKED = [user("Is it warm in Zürich?"), assistant("", tool_calls=[call({"place": "Zürich", "days": 2})]),
         {"role": "tool", "name": "get_weather", "tool_call_id": "call12345", "content": "{\"degrees\": 21}"}]

CONVERSATIONS = {
    "one question": {"messages": [user("Why is the sky blue?")]},
    "system": {"messages": [SYSTEM, user("Why is the sky blue?")]},
    "turns": {"messages": [SYSTEM, user("Hello!"), assistant("Hello. What can I do?"), user("Count to 3."), assistant("1 2 3"), user("Go on.")]},
    "ends with an answer": {"messages": [user("Hello!"), assistant("Hello.")]},
    "white space": {"messages": [{"role": "system", "content": "  Be kind.\n"}, user("\n  Two\n\nlines \t"), assistant(" Yes. \n"), user("ok\n")]},
    "odd text": {"messages": [user("Ünïcode 😀 <b>&amp;</b> {{ x }} {% if %} \\n \"quoted\" 'single'"), assistant("ﬁne…"), user("<|im_end|> </s> [/INST]")]},
    "empty texts": {"messages": [{"role": "system", "content": ""}, user("")]},
    "tools": {"messages": [SYSTEM, user("Is it warm in Zürich?")], "tools": [WEATHER, CLOCK]},
    "tools, no system": {"messages": [user("What time is it?")], "tools": [CLOCK]},
    "tool answer": {"messages": [SYSTEM, *ASKED], "tools": [WEATHER]},
    "tool answer, then talk": {"messages": [*ASKED, assistant("Yes, 21 degrees."), user("And tomorrow?")], "tools": [WEATHER, CLOCK]},
    "call with text arguments": {"messages": [user("Warm?"), assistant(None, tool_calls=[call("{\"place\": \"Bern\"}")]),
                                              {"role": "tool", "tool_call_id": "call12345", "content": "21"}], "tools": [WEATHER]},
    "two calls": {"messages": [user("Warm, and what time?"), assistant("Let me see.", tool_calls=[call({"place": "Bern"}), call({}, "clock", "call67890")]),
                               {"role": "tool", "name": "get_weather", "tool_call_id": "call12345", "content": "21"},
                               {"role": "tool", "name": "clock", "tool_call_id": "call67890", "content": "noon"}], "tools": [WEATHER, CLOCK]},
    "reasoning beside": {"messages": [user("2+2?"), assistant("4", reasoning_content="Two and two\nis four."), user("And 3+3?"),
                                      assistant("6", reasoning_content="Six."), user("Thanks")]},
    "reasoning within": {"messages": [user("2+2?"), assistant("<think>\nTwo and two.\n</think>\n\n4"), user("And 3+3?")]},
    "reasoning last": {"messages": [user("2+2?"), assistant("4", reasoning_content="Two and two.")]},
    "reasoning and a call": {"messages": [user("Warm?"), assistant("", reasoning_content="I ask.", tool_calls=[call({"place": "Bern"})]),
                                          {"role": "tool", "tool_call_id": "call12345", "name": "get_weather", "content": "21"}], "tools": [WEATHER]},
    "thinking off": {"messages": [user("2+2?")], "kwargs": {"enable_thinking": False}},
    "thinking on": {"messages": [user("2+2?")], "kwargs": {"enable_thinking": True}},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "Why"}, {"type": "text", "text": "blue?"}]}]},
    "documents": {"messages": [user("Who wrote it?")], "documents": [{"title": "A book", "text": "By nobody."}]},
    "developer": {"messages": [{"role": "developer", "content": "Be brief."}, user("Hi")]},
    "two users": {"messages": [user("One."), user("Two.")]},
    "functions as text": {"messages": [SYSTEM, user("Warm?")], "kwargs": {"functions": "[]", "datetime": "today"}},
    "one of several types": {"messages": [user("Warm?")], "tools": [{"type": "function", "function": {
        "name": "f", "description": "It.", "parameters": {"type": "object", "properties": {
            "a": {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "string"}], "description": "Any."}}, "required": []}}}]},
    "nothing": {"messages": []},
}


def cases():
    for name, conversation in CONVERSATIONS.items():
        for opening in (True, False):
            yield name + (", opened" if opening else ""), {**conversation, "add_generation_prompt": opening}


def expected(source, conversation):
    """{"text"} or {"error"} as jinja2 has it."""
    values = {"tools": None, "documents": None, **{k: v for k, v in conversation.items() if k != "kwargs"}, **conversation.get("kwargs", {})}
    try:
        return {"text": environment().from_string(source).render(bos_token="<s>", eos_token="</s>", **values)}
    except Exception as error:  # templates fail in every way that Python has
        return {"error": f"{type(error).__name__}: {error}"}


def judge(name, source, ours):
    """Problems, and what to say of the template in one line."""
    problems, equal, refused, more, lacking = [], 0, 0, 0, {}
    for (what, conversation), got in zip(cases(), ours):
        want = expected(source, conversation)
        if "error" in want and "error" in got:
            refused += 1
        elif want == got:
            equal += 1
        elif "error" in want and name in MORE:
            more += 1
        elif "text" in want and "error" in got:
            lacking.setdefault(got["error"], []).append(what)
        else:
            problems.append(f"{what}: ours {got}, jinja2 {want}")
    for error, whats in lacking.items():
        if name.startswith(FAMILIES) or name not in LACKS or LACKS[name] not in error:
            problems.append(f"{len(whats)} cases refused ({', '.join(whats[:3])}): {error}")
    if name in LACKS and not lacking:
        problems.append("is listed in LACKS and lacks nothing")
    if name in MORE and not more:
        problems.append("is listed in MORE and is refused as jinja2 refuses it")
    line = f"{equal} equal, {refused} refused by both" + (f", {more} refused by jinja2 alone" if more else "") + "".join(f", {len(w)} refused by us: {e}" for e, w in lacking.items())
    return problems, line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", help="only this template, with all that differs")
    args = parser.parse_args()
    templates = {p.stem: p.read_text(encoding="utf-8") for p in sorted(args.folder.glob("*.jinja")) if args.show in (None, p.stem)}
    if not templates:
        print(f"no templates in {args.folder}")
        return 1
    asked = {"now": NOW, "templates": templates, "conversations": [c for _, c in cases()]}
    ran = subprocess.run([args.program], input=json.dumps(asked), capture_output=True, text=True, check=True)
    ours, failed = json.loads(ran.stdout), 0
    for name, source in templates.items():
        problems, line = judge(name, source, ours[name])
        failed += bool(problems)
        print(f"{'FAILED' if problems else 'ok    '} {name}: {line}")
        for problem in problems if args.show else problems[:2]:
            print("       ", problem if args.show else problem[:600])
    print(f"{len(templates)} templates, {len(asked['conversations'])} cases each, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
