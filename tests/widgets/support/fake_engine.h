// SPDX-License-Identifier: GPL-3.0-or-later
// A scripted engine over a real store in a temporary folder: commands are recorded, labels and settings really written,
// outcomes come from a thread of their own as the real ones do.
#pragma once

#include <QCoreApplication>
#include <QTemporaryDir>
#include <QThread>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/channel.h"
#include "bridge/engine_api.h"

namespace sluice::gui::testing {

class FakeEngine final : public EngineApi {
 public:
  explicit FakeEngine(const std::string& folder) : m_store(openStore(folder)) {
    EngineState state;
    state.phase = EnginePhase::kReady;
    state.model_name = "fake";
    state.serving_name = "base";
    state.serving = kBaseVersion;
    state.data_folder = folder;
    m_state = std::make_shared<const EngineState>(state);
    m_worker = std::thread([this] {
      while (auto item = m_queue.pop()) item->second(answer(item->first));
    });
  }
  ~FakeEngine() override {
    if (onEnd) onEnd();
    m_queue.close();
    m_worker.join();
  }

  Store& writableStore() { return *m_store; }
  void setState(const std::function<void(EngineState&)>& change) {
    const std::lock_guard lock(m_mutex);
    EngineState next = *m_state;
    change(next);
    m_state = std::make_shared<const EngineState>(std::move(next));
  }
  std::atomic<bool> looser{false};  // what it says of every draft
  // In force before anybody changed it; set before the window looks.
  std::string gateJson =
      R"({"profile":"demo","alpha":0.1,"beta":0.1,"delta":0.05,"n_min":16,"cap":128,"protected_delta":0.05,"invariants":{"kl_base":1.0,"kl_incumbent":0.75}})";
  // Reads that wait for disk or sums, all of them and those on the thread of the window, of which there must be none.
  mutable std::atomic<int> reads{0}, readsInWindow{0};
  // Runs first in the destructor: an engine that takes its time to stop.
  std::function<void()> onEnd;
  // Decides what a command comes to; unset = as below.
  std::function<std::optional<CommandOutcome>(const Command&)> script;
  std::vector<Command> commands() const {
    const std::lock_guard lock(m_mutex);
    return m_commands;
  }
  template <class T>
  std::vector<T> commandsOf() const {
    std::vector<T> out;
    for (const Command& command : commands()) {
      if (const T* match = std::get_if<T>(&command)) out.push_back(*match);
    }
    return out;
  }

  std::shared_ptr<const EngineState> snapshot() const override {
    const std::lock_guard lock(m_mutex);
    return m_state;
  }
  std::uint64_t submit(Command command, std::function<void(const CommandOutcome&)> done) override {
    {
      const std::lock_guard lock(m_mutex);
      m_commands.push_back(command);
    }
    m_queue.push({std::move(command), std::move(done)});
    return ++m_number;
  }
  const Store& store() const override { return *m_store; }
  void add_listener(StoreListener listener) override { m_store->add_listener(std::move(listener)); }
  std::vector<RecipeSummary> recipes() const override {
    countRead();
    return {{"be-brief", "Short answers", "Accepts short answers.", ""}};
  }
  std::string gate_settings_json(SettingsId* id) const override {
    countRead();
    const auto row = m_store->gate_settings();
    if (id) *id = row ? row->id : SettingsId();
    return row ? row->settings_json : gateJson;
  }
  Result<WhatIfSummary> what_if(const std::string&) const override {
    countRead();
    return WhatIfSummary{};
  }
  Result<bool> loosens(const std::string&) const override {
    countRead();
    return looser.load();
  }
  Result<ModelFit> model_fit(const std::string&) const override {
    countRead();
    return ModelFit{9'100'000'000, 6'400'000'000, false, ""};
  }

 private:
  void countRead() const {
    ++reads;
    readsInWindow += QThread::currentThread() == QCoreApplication::instance()->thread();
  }
  static std::unique_ptr<Store> openStore(const std::string& folder) {
    StoreOptions options;
    options.folder = folder;
    auto opened = Store::open(options);
    return opened.ok() ? std::move(opened).value() : nullptr;
  }

  CommandOutcome answer(const Command& command) {
    if (script) {
      if (auto scripted = script(command)) return *scripted;
    }
    CommandOutcome out;
    if (const auto* label = std::get_if<GiveLabel>(&command)) {
      FeedbackRow row;
      row.record = label->record;
      row.kind = label->kind;
      row.source = FeedbackSource::kHuman;
      row.labeller = label->labeller;
      const auto given = m_store->add_feedback(row);
      if (!given.ok()) return failed(given.status());
      out.feedback = given->row.id;
      out.feedback_state = given->row.state;
    } else if (const auto* back = std::get_if<TakeLabelBack>(&command)) {
      const auto taken = m_store->retract_feedback(back->feedback, true);
      if (!taken.ok()) return failed(taken.status());
      out.text = "Taken back.";
      out.feedback = back->feedback;
      out.feedback_state = taken->state;
    } else if (const auto* settings = std::get_if<PutGateSettings>(&command)) {
      GateSettingsRow row;
      row.who = settings->who;
      row.note = settings->note;
      row.settings_json = settings->settings_json;
      const auto id = m_store->add_gate_settings(row);
      if (!id.ok()) return failed(id.status());
      out.settings = *id;
      out.text = "Gate settings hold.";
    }
    return out;
  }
  static CommandOutcome failed(const Status& status) {
    CommandOutcome out;
    out.status = status;
    out.text = status.message();
    return out;
  }

  std::unique_ptr<Store> m_store;
  mutable std::mutex m_mutex;
  std::shared_ptr<const EngineState> m_state;
  std::vector<Command> m_commands;
  Channel<std::pair<Command, std::function<void(const CommandOutcome&)>>> m_queue{1024};
  std::atomic<std::uint64_t> m_number{0};
  std::thread m_worker;
};

inline RecordRow makeRecord(const std::string& prompt, const std::string& reply) {
  RecordRow row;
  row.id = RecordId::make();
  row.version = kBaseVersion;
  row.adapter_name = "base";
  row.route = "chat";
  row.prompt_text = prompt;
  row.completion_text = reply;
  row.prompt_ids = {1, 2, 3};
  row.token_ids = {4, 5};
  row.lp_full = {-1.0f, -1.0f};
  row.lp_mu = {-1.0f, -1.0f};
  row.finish_reason = "stop";
  row.complete = true;
  return row;
}

}  // namespace sluice::gui::testing
