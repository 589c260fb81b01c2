// SPDX-License-Identifier: GPL-3.0-or-later
// The real window on the real engine: a store file, the HTTP server, the generator on the tiny random model, the trainer
// and the gate, all in a temporary folder. One recipe, named be-brief, so that "Run the demo" starts it; its gate can
// neither prove nor refute anything within its four pairs, so every candidate is held and a person decides.
#pragma once

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <memory>
#include <string>
#include <vector>

#include "base/net/http_client.h"
#include "bridge/runtime_api.h"
#include "runtime/load.h"
#include "workbench/main_window.h"

namespace sluice::gui::testing {

inline QByteArray tinyRecipe() {
  return R"({
    "name": "be-brief", "title": "Be brief", "summary": "Short answers of a tiny model.",
    "stream": {
      "forms": ["What is {topic}?", "Tell me about {topic}.", "Explain {topic}.", "Why {topic}?"],
      "topics": ["snow", "a rainbow", "the Moon", "a glacier", "lightning", "a desert", "coffee", "chess"],
      "held_out_topics": ["fog", "a comet", "tea", "rice"],
      "probe_topics": ["salt"]
    },
    "user": {"name": "reader", "rules": [{"rule": "characters", "min": 1, "max": 12}]},
    "protected": {"name": "says something", "rules": [{"rule": "not-empty"}]},
    "sampling": {"temperature": 1.0, "top_p": 1.0, "max_tokens": 8},
    "learn": {
      "lr": 0.001, "rank": 4, "alpha": 8, "aggregation": "token_mean", "kl_beta": 0.0, "warmup_steps": 0,
      "batch_size": 16, "candidate_every": 1, "max_ahead": 1000, "max_age": 1000, "skip_equal_rewards": false,
      "brakes": {"mean_abs_kl": 50, "length_bias": 1, "length_low": 0.01, "length_high": 100, "outside_ratio_share": 1}
    },
    "gate": {
      "profile": "demo", "alpha": 0.01, "beta": 0.01, "n_min": 2, "cap": 4, "probes": 2, "protected_limit": 1000000,
      "protected_alpha": 1, "anchor": false,
      "invariants": {"kl_incumbent": 100, "kl_base": 100, "eos_drop": 1, "cut_rise": 1, "empty_rise": 1,
                     "length_ratio_lo": 0, "length_ratio_hi": 1000, "distinct3_ratio": 0, "duplicate_ratio": 1000,
                     "duplicate_rise": 1, "latency_ratio": 1000, "probe_mismatch": 10}
    },
    "demo": {"requests": 0, "bad_candidate": false, "heldout": 4, "concurrency": 2}
  })";
}

inline std::string tinyModel() { return std::string(SLUICE_TEST_DATA) + "/tiny-llama.gguf"; }

// A window over an open workspace. `runtime` is the engine behind it, for reads only.
struct RealFixture {
  QTemporaryDir dir;
  Log log;
  MainWindow window;
  const Runtime* runtime = nullptr;

  RealFixture() {
    QDir(dir.path()).mkpath(QStringLiteral("recipes"));
    QFile file(dir.path() + QStringLiteral("/recipes/be-brief.json"));
    if (file.open(QIODevice::WriteOnly)) file.write(tinyRecipe());
  }
  std::string folder() const { return dir.path().toStdString() + "/ws"; }
  const Store& store() const { return runtime->store(); }
  EngineState state() const { return *runtime->snapshot(); }

  RuntimeOptions options() const {
    RuntimeOptions o;
    o.data_folder = folder();
    o.model_path = tinyModel();
    o.recipe_folder = dir.path().toStdString() + "/recipes";
    o.port = 0;
    o.kv_tokens = 4096;
    o.engine_threads = 1;
    o.trainer_threads = 1;
    return o;
  }
  // "" or why the engine did not open.
  std::string open() { return open(options()); }
  std::string open(RuntimeOptions o) {
    auto opened = Runtime::open(std::move(o), log);
    if (!opened.ok()) return opened.status().message();
    runtime = opened->get();
    window.setEngine(std::make_unique<RuntimeApi>(std::move(opened).value()));
    window.show();
    return {};
  }
  template <class T>
  T* find(const char* name) const {
    return window.findChild<T*>(QString::fromLatin1(name));
  }
};

// A client's request over HTTP, with the sampling settings of the tiny recipe; "" or what went wrong.
inline std::string askOverHttp(const std::string& url, const std::string& question, int seed) {
  auto client = HttpClient::create(url);
  if (!client.ok()) return client.status().message();
  const std::string body = R"({"messages":[{"role":"user","content":")" + question + R"("}],"max_tokens":8,"temperature":1,"seed":)" +
                           std::to_string(seed) + "}";
  const auto answer = (*client)->post("/v1/chat/completions", body, "application/json");
  if (!answer.ok()) return answer.status().message();
  return answer->status == 200 ? "" : answer->body;
}

// Sum and count of log-probs of the tokens that records were answered with, under an adapter folder ("" = base).
struct Scored {
  double sum = 0;
  std::int64_t tokens = 0;
  std::string error;
  double mean() const { return sum / static_cast<double>(tokens); }
};

inline Scored score(const Model& model, const std::string& adapterFolder, const std::vector<RecordRow>& records) {
  Scored out;
  std::shared_ptr<const Adapter> adapter;
  if (!adapterFolder.empty()) {
    auto loaded = model.adapter_loader().load(adapterFolder, VersionId(1));
    if (!loaded.ok()) return Scored{0, 0, loaded.status().message()};
    adapter = *loaded;
  }
  const auto context = model.make_context({});
  for (const RecordRow& record : records) {
    std::vector<TokenId> ids = record.prompt_ids;
    ids.insert(ids.end(), record.token_ids.begin(), record.token_ids.end());
    const std::vector<TokenId> targets(ids.begin() + 1, ids.end());
    ids.pop_back();
    const auto opened = context->open(adapter, {ids.front()}, static_cast<int>(ids.size()) + 1);
    if (!opened.ok()) return Scored{0, 0, opened.status().message()};
    StepInput input;
    StepItem item;
    item.sequence = opened->handle;
    item.tokens = ids.data();
    item.count = static_cast<int>(ids.size());
    item.score = true;
    item.score_targets = targets.data();
    item.score_temperature = record.temperature;
    input.items.push_back(item);
    const auto done = context->step(input);
    if (!done.ok()) return Scored{0, 0, done.status().message()};
    const std::vector<float>& scores = done->results.front().scores;
    for (std::size_t i = scores.size() - record.token_ids.size(); i < scores.size(); ++i) out.sum += scores[i];
    out.tokens += static_cast<std::int64_t>(record.token_ids.size());
    context->close(opened->handle);
  }
  return out;
}

}  // namespace sluice::gui::testing
