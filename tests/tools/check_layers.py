#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""check_layers.py [ROOT]: reads the tree and fails on what the architecture forbids.

Engine: the LINKS of each sluice_layer() are allowed arrows and form no cycle; every #include between folders goes along
them; outside libraries are included only where named below; every source, and every header that another folder includes,
is listed in CMake; every mutex guards something. Window: layers, features apart from each other, nothing that blocks the GUI thread. Tests: no sleeps.
Prints one line a violation (file:line: what) and warnings for long files; exit status 1 on any violation."""
import re
import sys
from collections import namedtuple
from pathlib import Path

# The layer graph: what each folder of engine/ may link directly.
ARROWS = {
    "base": (),
    "base/net": ("base",),
    "text": ("base",),
    "store": ("base",),
    "model_api": ("base",),
    "model/format": ("base",),
    "model/kernels": ("base",),
    "model": ("model_api", "model/kernels", "model/format"),
    "serve": ("model_api",),
    "serve/attach": ("serve", "base/net"),
    "chat": ("serve", "text", "store"),
    "tasks": ("chat", "store", "base/net"),
    "learn": ("model_api", "store", "text"),
    "learn_torch": ("learn", "model"),
    "release": ("tasks", "store", "model_api"),
    "http": ("chat", "release", "store"),
}
ARROWS["runtime"] = tuple(ARROWS)

# Outside libraries: pattern of the included path -> files (below ROOT) that may include it, and why not elsewhere.
Outside = namedtuple("Outside", "include files why")
OUTSIDE = (
    Outside(r"(torch/torch|torch/types|ATen/ATen)\.h|torch/optim/", (), "too slow to compile: include single ops"),
    Outside(r"(ATen|torch|c10|caffe2)/",
            ("engine/model/*_at.h", "engine/model/*.cpp", "engine/learn_torch/*_at.h", "engine/learn_torch/*.cpp",
             "tests/engine/model/*_test.cpp", "tests/engine/learn_torch/*_test.cpp", "tests/tools/torch_smoke_test.cpp",
             "tests/bench/*.cpp"),
            "torch stays in *_at.h and sources of model and learn_torch"),
    Outside(r"[^/]+/(.*/)?[^/]*_at\.h",
            ("engine/model/*", "engine/learn_torch/*", "tests/engine/model/*", "tests/engine/learn_torch/*", "tests/bench/*"),
            "a *_at.h header brings torch: only model and learn_torch include it"),
    Outside(r"sqlite3(ext)?\.h", ("engine/store/database.cpp", "tests/**"), "SQLite is reached through store/database.h"),
    Outside(r"httplib\.h", ("engine/base/net/http_client.cpp", "tests/**"),
            "cpp-httplib is reached through http/server.h and base/net/http_client.h"),
    Outside(r"nlohmann/",
            ("engine/http/*.cpp", "engine/serve/attach/*.cpp", "engine/tasks/judge*.cpp", "engine/tasks/streams*.cpp",
             "engine/text/tokenizer*.cpp", "engine/model/config*.cpp", "engine/model/adapter_loader*.cpp",
             "engine/model/format/safetensors*.cpp", "engine/release/evidence*.cpp", "engine/release/gate_json.cpp", "engine/tasks/driver_json.cpp",
             "engine/runtime/*.cpp", "app/**.cpp", "tests/**"),
            "JSON stays in the sources that read or write it, never in a header"),
    Outside(r"hwy/", ("engine/model/kernels/*", "tests/engine/model/kernels/*"), "SIMD stays in model/kernels"),
    Outside(r"Q[A-Z]\w*(/|$)|Qt\w+/|q[a-z]+\.h$", ("widgets/**", "app/workbench/**", "tests/widgets/**", "tests/e2e/**"),
            "Qt stays in widgets and app/workbench"),
)

# Calls that block the GUI thread or run a second event loop in it; nothing in widgets/ or app/workbench/ may hold them.
GUI_FORBIDDEN = (
    (r"\bBlockingQueuedConnection\b", "blocks the caller's thread"),
    (r"\bprocessEvents\b", "runs other handlers in the middle of this one"),
    (r"\bQEventLoop\b", "a nested event loop"),
    (r"\bwaitForFinished\b|\bstd::future\b|\bstd::promise\b", "waits for a result: take it as an event"),
    (r"\bQDialog\b.*\bexec\(|\bdialog\w*(\.|->)exec\(|QMessageBox::(question|information|warning|critical)\(",
     "a nested event loop: use open()"),
)
# Reads of the engine that wait for disk or sums. Only a job has an `api` to ask (EngineBridge::job); widgets/bridge makes them.
ENGINE_READ = re.compile(r"(?<!\bapi)(\.|->|\bRuntime::)(gate_settings_json|what_if|loosens|model_fit|recipes)\(")
TEST_FORBIDDEN = (
    (r"\bsleep_(for|until)\s*\(|\bqWait\s*\(|\bqSleep\s*\(|(?<!\.)(?<!->)\b(u|nano)?sleep\s*\(|QThread::m?sleep",
     "tests wait for conditions, not for time"),
)
LONG_FILE = 400
SUFFIXES = {".h", ".cpp", ".cu"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LAYER = re.compile(r"sluice_layer\(\s*(\S+)(.*?)\)", re.S)
KEYWORDS = {"SOURCES", "HEADERS", "LINKS", "PRIVATE_LINKS"}
Line = namedtuple("Line", "number text code")


def matches(name, pattern):
    """As a shell does it: * stays within a folder, ** does not."""
    parts = [".*" if part == "**" else "[^/]*" if part == "*" else re.escape(part) for part in re.split(r"(\*\*|\*)", pattern)]
    return re.fullmatch("".join(parts), name) is not None


def strip_comments(text):
    """The same lines without comments; string literals stay whole."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
    return token.sub(lambda m: m.group() if m.group()[0] == '"' else "\n" * m.group().count("\n"), text)


class Checker:
    def __init__(self, root):
        self.root = root
        self.errors = []
        self.warnings = []
        self.layers = {}  # folder -> list of folders it links
        self.listings = {}  # folder -> text of its CMakeLists.txt
        self.unlisted = set()  # headers reported so far

    def error(self, path, number, what):
        self.errors.append(f"{path}:{number}: {what}")

    def sources(self, *tops):
        for top in tops:
            for path in sorted((self.root / top).rglob("*")):
                if path.suffix in SUFFIXES and path.is_file():
                    yield path, path.relative_to(self.root).as_posix()

    def lines(self, path):
        text = path.read_text(encoding="utf-8")
        code = strip_comments(text).split("\n")
        return [Line(i, t, c) for i, (t, c) in enumerate(zip(text.split("\n"), code), 1)]

    # --- CMake: the declared graph ---

    def read_layers(self):
        for path in sorted((self.root / "engine").rglob("CMakeLists.txt")):
            folder = path.parent.relative_to(self.root / "engine").as_posix()
            name = path.relative_to(self.root).as_posix()
            text = re.sub(r"#[^\n]*", "", path.read_text(encoding="utf-8"))
            for match in LAYER.finditer(text):
                number = text[: match.start()].count("\n") + 1
                if match.group(1) != folder:
                    self.error(name, number, f"sluice_layer({match.group(1)}) stands in folder {folder}")
                links, keyword = [], None
                for word in match.group(2).split():
                    if word in KEYWORDS:
                        keyword = word
                    elif keyword == "LINKS":
                        links.append(word)
                self.layers[folder] = links
                self.check_links(name, number, folder, links)
            if folder in self.layers:
                self.listings[folder] = text
        self.check_cycles()

    def is_listed(self, path):
        """Whether the CMakeLists.txt of its folder names this file (a path relative to engine/)."""
        folder = self.engine_folder(path)
        name = Path(path).relative_to(folder).as_posix()
        return re.search(rf"(?<![\w/.]){re.escape(name)}(?![\w.])", self.listings[folder]) is not None

    def check_public_header(self, target):
        if target not in self.unlisted and not self.is_listed(target):
            self.unlisted.add(target)
            self.error(f"engine/{target}", 1, f"other folders include it, but engine/{self.engine_folder(target)}/CMakeLists.txt "
                                              "does not list it")

    def check_links(self, name, number, folder, links):
        if folder not in ARROWS:
            self.error(name, number, f"folder {folder} is not in the layer graph of tests/tools/check_layers.py")
            return
        for link in links:
            if link not in ARROWS[folder]:
                self.error(name, number, f"the arrow {folder} -> {link} is not allowed")

    def check_cycles(self):
        done, open_path = set(), []

        def visit(folder):
            if folder in open_path:
                cycle = open_path[open_path.index(folder):] + [folder]
                self.errors.append("engine: cycle " + " -> ".join(cycle))
                return
            if folder in done:
                return
            open_path.append(folder)
            for link in self.layers.get(folder, ()):
                visit(link)
            open_path.pop()
            done.add(folder)

        for folder in self.layers:
            visit(folder)

    def reachable(self, folder):
        seen, todo = set(), [folder]
        while todo:
            for link in self.layers.get(todo.pop(), ()):
                if link not in seen:
                    seen.add(link)
                    todo.append(link)
        return seen

    def engine_folder(self, path):
        """The layer that a path relative to engine/ belongs to, or None."""
        folder = Path(path).parent.as_posix()
        while folder not in (".", ""):
            if folder in self.layers:
                return folder
            folder = Path(folder).parent.as_posix()
        return None

    # --- Sources ---

    def check_outside(self, name, line, target):
        for rule in OUTSIDE:
            if re.match(rule.include, target):
                if not any(matches(name, pattern) for pattern in rule.files):
                    self.error(name, line.number, f"must not include {target}: {rule.why}")
                    return

    def check_engine_file(self, path, name):
        folder = self.engine_folder(path.relative_to(self.root / "engine").as_posix())
        if folder is None:
            return
        if path.suffix != ".h" and not self.is_listed(name.removeprefix("engine/")):
            self.error(name, 1, f"is not listed in engine/{folder}/CMakeLists.txt")
        allowed = self.reachable(folder) | {folder}
        lines = self.lines(path)
        for line in lines:
            match = INCLUDE.match(line.text)
            if not match:
                continue
            target = match.group(2)
            other = self.engine_folder(target)
            if other is not None and (self.root / "engine" / target).exists():
                if other not in allowed:
                    self.error(name, line.number, f"includes {target}: there is no arrow {folder} -> {other}")
                if other != folder:
                    self.check_public_header(target)
            elif match.group(1) == '"' and not re.match(r"(nlohmann|hwy|ATen|torch|c10)/", target):
                self.error(name, line.number, f'includes "{target}", which is not in engine/ (paths start there)')
        self.check_mutexes(name, lines)

    def check_mutexes(self, name, lines):
        if name == "engine/base/guarded.h":
            return
        code = "\n".join(line.code for line in lines)
        for line in lines:
            if re.search(r"\bstd::(recursive_|shared_|timed_)?mutex\b", line.code):
                self.error(name, line.number, "use sluice::Mutex of base/guarded.h, which clang can check")
            member = re.match(r"\s*(?:mutable\s+)?(?:sluice::)?Mutex\s+(\w+)\s*;", line.code)
            if member and not re.search(rf"SLUICE_((PT_)?GUARDED_BY|REQUIRES)\([^)]*\b{member.group(1)}\b", code):
                self.error(name, line.number, f"nothing is SLUICE_GUARDED_BY({member.group(1)}) and no call SLUICE_REQUIRES it")

    def check_widgets_file(self, path, name):
        parts = name.split("/")
        layer = parts[1] if parts[0] == "widgets" and len(parts) > 2 else None
        features = {p.name for p in (self.root / "widgets").iterdir() if p.is_dir()} if (self.root / "widgets").is_dir() else set()
        below = {"bridge": {"bridge"}, "shell": {"bridge", "shell"}}.get(layer, {"bridge", "shell", layer})
        for line in self.lines(path):
            for pattern, why in GUI_FORBIDDEN:
                if re.search(pattern, line.code):
                    self.error(name, line.number, f"{line.code.strip()!r}: {why}")
            if layer != "bridge" and ENGINE_READ.search(line.code):
                self.error(name, line.number, f"{line.code.strip()!r}: reads the engine outside a job (EngineBridge::job)")
            if re.search(r"_model\.(h|cpp)$", name) and re.search(r"\bQ?(Recursive)?Mutex\b|\bstd::mutex\b", line.code):
                self.error(name, line.number, "a model lives on the GUI thread and has no mutex")
            match = INCLUDE.match(line.text)
            if not match or layer is None:
                continue
            target = match.group(2)
            top = target.removeprefix("widgets/").split("/")[0]
            if "/" in target and top in features and (target.startswith("widgets/") or (self.root / "widgets" / target).exists()):
                if top not in below:
                    self.error(name, line.number, f"includes {target}: {layer} may not see {top}")
            elif layer != "bridge" and self.engine_folder(target) and (self.root / "engine" / target).exists():
                self.error(name, line.number, f"includes {target}: only widgets/bridge sees engine headers")
            elif layer == "bridge" and re.match(r"(QtWidgets|QtGui|QtCharts)/|QWidget|QApplication|QIcon|QColor$", target):
                self.error(name, line.number, f"includes {target}: the bridge is QtCore only")

    def check_app_file(self, path, name):
        for line in self.lines(path):
            match = INCLUDE.match(line.text)
            folder = self.engine_folder(match.group(2)) if match else None
            if folder and (self.root / "engine" / match.group(2)).exists() and folder not in ("runtime", "base"):
                self.error(name, line.number, f"includes {match.group(2)}: programs see runtime and base only")

    def check_everywhere(self, path, name):
        lines = self.lines(path)
        if not lines[0].text.startswith("// SPDX-License-Identifier: GPL-3.0-or-later"):
            self.error(name, 1, "the first line is not the SPDX line")
        for line in lines:
            match = INCLUDE.match(line.text)
            if match:
                self.check_outside(name, line, match.group(2))
            if name.startswith("tests/"):
                for pattern, why in TEST_FORBIDDEN:
                    if re.search(pattern, line.code):
                        self.error(name, line.number, f"{line.code.strip()!r}: {why}")
        if len(lines) - 1 > LONG_FILE and not name.startswith("tests/"):
            self.warnings.append(f"{name}: {len(lines) - 1} lines, more than {LONG_FILE}: is it two things?")

    def run(self):
        self.read_layers()
        for path, name in self.sources("engine", "widgets", "app", "tests"):
            self.check_everywhere(path, name)
        for path, name in self.sources("engine"):
            self.check_engine_file(path, name)
        for path, name in self.sources("widgets", "app/workbench"):
            self.check_widgets_file(path, name)
        for path, name in self.sources("app"):
            self.check_app_file(path, name)
        return not self.errors


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    checker = Checker(root)
    good = checker.run()
    for warning in checker.warnings:
        print("warning:", warning)
    for error in checker.errors:
        print(error)
    print(f"{len(checker.layers)} folders, {len(checker.errors)} violations")
    if not checker.layers:
        print(f"{root} has no engine/ with sluice_layer() calls")
    return 0 if good and checker.layers else 1


if __name__ == "__main__":
    sys.exit(main())
