// SPDX-License-Identifier: GPL-3.0-or-later
// The window on a scripted engine, open and shown, and rows as the gate writes them.
#pragma once

#include <QTemporaryDir>
#include <functional>
#include <memory>
#include <string>

#include "widgets/support/fake_engine.h"
#include "workbench/main_window.h"

namespace sluice::gui::testing {

struct FakeWindow {
  QTemporaryDir dir;
  MainWindow window;
  FakeEngine* engine = nullptr;
  explicit FakeWindow(const std::function<void(FakeEngine&)>& prepare = {}) {
    auto made = std::make_unique<FakeEngine>(dir.path().toStdString());
    engine = made.get();
    if (prepare) prepare(*engine);
    window.setEngine(std::move(made));
    window.show();
  }
  template <class T>
  T* find(const char* name) {
    return window.findChild<T*>(QString::fromLatin1(name));
  }
};

// A version that is registered and decided on, as the gate does it.
inline VersionId addVersion(Store& store, Verdict verdict, const std::string& reason, SessionId session = SessionId(),
                            const std::string& label = {}) {
  const VersionId id = *store.reserve_version();
  VersionRow row;
  row.id = id;
  row.name = "be-brief";
  row.parent = kBaseVersion;
  row.session = session;
  row.origin = "step";
  row.label = label;
  row.content_hash = "abc";
  if (!store.add_version(row).ok()) return {};
  if (!store.set_version_state(id, VersionState::kEvaluating).ok()) return {};
  const VersionId before = store.serving_version();
  DecisionWrite write;
  write.row.version = id;
  write.row.parent = kBaseVersion;
  write.row.incumbent = before;
  write.row.anchor = kBaseVersion;
  write.row.session = session;
  write.row.verdict = verdict;
  write.row.kind = "gate";
  write.row.scope = verdict == Verdict::kPromote ? "full" : "";
  write.row.actor = "gate";
  write.row.reason_text = reason;
  write.row.candidate_k = 30;
  write.row.candidate_n = 40;
  if (verdict == Verdict::kPromote) {
    write.states = {{before, VersionState::kRetired}, {id, VersionState::kServing}};
    write.serving = id;
  } else {
    write.states = {{id, verdict == Verdict::kHold ? VersionState::kHeld : VersionState::kRejected}};
  }
  const auto committed = store.commit_decision(write);
  return committed.ok() ? id : VersionId();
}

}  // namespace sluice::gui::testing
