# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo's prompts, its simulated user and its protected metric, written a second time: what the acceptance scripts judge by."""
import re


def words(text):
    return sum(1 for w in text.split() if any(c.isalnum() or ord(c) > 127 and not 0x2000 <= ord(c) <= 0x203F for c in w))


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


def names_topic(text, names):
    """Whether one of the names stands in the text, in any case, at the start of a word."""
    return any(re.search(r"(?<![^\W_])" + re.escape(name), text, re.I) for name in names)


# What breaks_be_brief and names_topic stand for; another recipe needs other rules than this file has.
USER_RULES = [{"rule": "finished"}, {"rule": "words", "min": 5, "max": 45}, {"rule": "one-paragraph"}, {"rule": "no-markup"}]
PROTECTED_RULES = [{"rule": "names-topic"}]


class Prompts:
    """Prompts of a recipe: text -> (id, names of its topic)."""

    def __init__(self, recipe):
        stream = recipe["stream"]
        self.train, self.held_out, self.probes = (
            self._expand(stream["forms"], stream.get(key, [])) for key in ("topics", "held_out_topics", "probe_topics"))
        self.all = {**self.train, **self.held_out, **self.probes}

    @staticmethod
    def _expand(forms, topics):
        out = {}
        for number, form in enumerate(forms):
            for topic in topics:
                text, names = (topic, None) if isinstance(topic, str) else (topic["text"], topic.get("names"))
                prompt = form.replace("{topic}", text)
                out[prompt[0].upper() + prompt[1:]] = (f"{number}/{text}", names or [re.sub(r"(?i)^(an?|the) ", "", text)])
        return out
