#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layer check finds what it claims to find: each test lays a small tree with one fault and expects that fault."""
import sys
import tempfile
import unittest
from pathlib import Path

from check_layers import Checker

SPDX = "// SPDX-License-Identifier: GPL-3.0-or-later\n"
GOOD = {
    "engine/base/CMakeLists.txt": "sluice_layer(base\n  SOURCES result.cpp\n  HEADERS result.h)",
    "engine/base/result.h": SPDX + "#pragma once\n#include <string>\n",
    "engine/base/result.cpp": SPDX + '#include "base/result.h"\n',
    "engine/model_api/CMakeLists.txt": "sluice_layer(model_api\n  HEADERS model.h\n  LINKS base)",
    "engine/model_api/model.h": SPDX + '#include "base/result.h"\n',
    "engine/serve/CMakeLists.txt": "sluice_layer(serve\n  SOURCES engine.cpp HEADERS engine.h\n  LINKS model_api\n  PRIVATE_LINKS x::y)",
    "engine/serve/engine.h": SPDX + '#include "base/result.h"\n#include "model_api/model.h"\n',
    "engine/serve/engine.cpp": SPDX + '#include "serve/engine.h"\n',
    "engine/text/CMakeLists.txt": "sluice_layer(text\n  HEADERS vocabulary.h\n  LINKS base)",
    "engine/text/vocabulary.h": SPDX,
    "widgets/bridge/inbox.h": SPDX + '#include <QObject>\n#include "serve/engine.h"\n',
    "widgets/shell/theme.h": SPDX + '#include "bridge/inbox.h"\n',
    "widgets/curves/card.cpp": SPDX + '#include "shell/theme.h"\n#include "curves/card.h"\n',
    "widgets/curves/card.h": SPDX,
    "widgets/gate/panel.h": SPDX,
    "tests/engine/serve/engine_test.cpp": SPDX + '#include "serve/engine.h"\n',
}


class CheckLayersTest(unittest.TestCase):
    def errors(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**GOOD, **changes}.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            checker = Checker(Path(folder))
            checker.run()
            return checker.errors

    def assert_finds(self, fragment, changes):
        errors = self.errors(changes)
        self.assertEqual(len(errors), 1, errors)
        self.assertIn(fragment, errors[0])

    def test_good_tree_passes(self):
        self.assertEqual(self.errors({}), [])

    def test_include_against_the_arrows(self):
        self.assert_finds("no arrow serve -> text", {"engine/serve/engine.cpp": SPDX + '#include "text/vocabulary.h"\n'})

    def test_include_upwards(self):
        self.assert_finds("no arrow base -> serve", {"engine/base/result.cpp": SPDX + '#include "serve/engine.h"\n'})

    def test_forbidden_arrow(self):
        self.assert_finds("arrow serve -> text is not allowed",
                          {"engine/serve/CMakeLists.txt": "sluice_layer(serve SOURCES engine.cpp HEADERS engine.h LINKS model_api text)"})

    def test_cycle(self):
        errors = self.errors({"engine/base/CMakeLists.txt": "sluice_layer(base SOURCES result.cpp HEADERS result.h LINKS serve)"})
        self.assertTrue(any("cycle base -> serve -> model_api -> base" in e for e in errors), errors)

    def test_unknown_folder_and_unlisted_file(self):
        errors = self.errors({"engine/extra/CMakeLists.txt": "sluice_layer(extra HEADERS a.h)",
                              "engine/extra/a.h": SPDX, "engine/extra/b.cpp": SPDX})
        self.assertEqual(len(errors), 2, errors)
        self.assertIn("extra is not in the layer graph", errors[0])
        self.assertIn("engine/extra/b.cpp:1: is not listed", errors[1])

    def test_unlisted_header(self):
        changes = {"engine/model_api/private.h": SPDX}
        self.assertEqual(self.errors(changes), [])
        self.assert_finds("engine/model_api/private.h:1: other folders include it",
                          {**changes, "engine/serve/engine.cpp": SPDX + '#include "model_api/private.h"\n'})

    def test_quoted_include_of_nothing(self):
        self.assert_finds('includes "engine.h"', {"engine/serve/engine.cpp": SPDX + '#include "engine.h"\n'})

    def test_outside_libraries(self):
        for include in ("sqlite3.h", "httplib.h", "nlohmann/json.hpp", "hwy/highway.h", "QString", "QtCore/qglobal.h",
                        "ATen/core/Tensor.h", "c10/core/Device.h", "torch/torch.h"):
            with self.subTest(include):
                self.assert_finds(f"must not include {include}", {"engine/serve/engine.cpp": SPDX + f"#include <{include}>\n"})

    def test_torch_only_in_at_headers_and_sources_of_model(self):
        listing = "sluice_layer(model SOURCES a.cpp HEADERS x_at.h x.h LINKS model_api)"
        include = SPDX + "#include <ATen/core/Tensor.h>\n"
        good = {"engine/model/CMakeLists.txt": listing, "engine/model/a.cpp": include, "engine/model/x_at.h": include,
                "engine/model/x.h": SPDX}
        self.assertEqual(self.errors(good), [])
        self.assert_finds("engine/model/x.h:2", {**good, "engine/model/x.h": include})
        self.assert_finds("engine/model/format/f.cpp:2", {
            **good, "engine/model/format/CMakeLists.txt": "sluice_layer(model/format SOURCES f.cpp LINKS base)",
            "engine/model/format/f.cpp": include})
        self.assert_finds("too slow", {**good, "engine/model/a.cpp": SPDX + "#include <torch/torch.h>\n"})

    def test_json_never_in_a_header(self):
        good = {"engine/runtime/CMakeLists.txt": "sluice_layer(runtime SOURCES a.cpp HEADERS a.h LINKS base)",
                "engine/runtime/a.cpp": SPDX + "#include <nlohmann/json.hpp>\n", "engine/runtime/a.h": SPDX}
        self.assertEqual(self.errors(good), [])
        self.assert_finds("a.h:2", {**good, "engine/runtime/a.h": SPDX + "#include <nlohmann/json.hpp>\n"})

    def test_mutex_without_a_guarded_field(self):
        self.assert_finds("nothing is SLUICE_GUARDED_BY(mu_)", {"engine/serve/engine.h": SPDX + "class A {\n  Mutex mu_;\n};\n"})
        self.assert_finds("use sluice::Mutex", {"engine/serve/engine.h": SPDX + "std::mutex mu_;\n"})
        self.assertEqual(self.errors({"engine/serve/engine.h": SPDX + "mutable Mutex mu_;\nint x_ SLUICE_GUARDED_BY(mu_);\n"}), [])
        self.assertEqual(self.errors({"engine/serve/engine.h": SPDX + "Mutex turn_;\nvoid go() SLUICE_REQUIRES(turn_);\n"}), [])

    def test_widget_layers(self):
        self.assert_finds("curves may not see gate", {"widgets/curves/card.cpp": SPDX + '#include "gate/panel.h"\n'})
        self.assert_finds("shell may not see curves", {"widgets/shell/theme.h": SPDX + '#include "widgets/curves/card.h"\n'})
        self.assert_finds("only widgets/bridge sees engine", {"widgets/gate/panel.h": SPDX + '#include "serve/engine.h"\n'})
        self.assert_finds("QtCore only", {"widgets/bridge/inbox.h": SPDX + "#include <QWidget>\n"})

    def test_programs_see_runtime_only(self):
        self.assert_finds("programs see runtime", {"app/headless/main.cpp": SPDX + '#include "serve/engine.h"\n'})

    def test_calls_that_block_the_window(self):
        for code in ("connect(a, b, c, d, Qt::BlockingQueuedConnection);", "qApp->processEvents();", "QEventLoop loop;",
                     "future.waitForFinished();", 'QMessageBox::question(this, "a", "b");'):
            with self.subTest(code):
                self.assert_finds("card.cpp:2", {"widgets/curves/card.cpp": SPDX + code + "\n"})
        self.assertEqual(self.errors({"widgets/curves/card.cpp": SPDX + "// never processEvents() here\n"}), [])

    def test_engine_reads_in_the_window_are_jobs(self):
        for code in ("m_bridge.api().recipes();", "m_api->gate_settings_json(&id);", "Runtime::model_fit(path);"):
            for name in ("widgets/curves/card.cpp", "app/workbench/window.cpp"):
                self.assert_finds("outside a job", {name: SPDX + code + "\n"})
        job = "bridge.job(this, [](const EngineApi& api) { return api.recipes(); }, done);\n"
        self.assertEqual(self.errors({"widgets/curves/card.cpp": SPDX + job}), [])

    def test_tests_do_not_sleep(self):
        for code in ("std::this_thread::sleep_for(1s);", "QTest::qWait(50);", "usleep(3);"):
            with self.subTest(code):
                self.assert_finds("wait for conditions", {"tests/engine/serve/engine_test.cpp": SPDX + code + "\n"})
        for code in ("engine->sleep(true);", "engine.sleep(false);"):  # the engine's own state of that name
            self.assertEqual(self.errors({"tests/engine/serve/engine_test.cpp": SPDX + code + "\n"}), [])

    def test_spdx_line(self):
        self.assert_finds("SPDX", {"engine/text/vocabulary.h": "#pragma once\n"})


if __name__ == "__main__":
    sys.exit(unittest.main())
