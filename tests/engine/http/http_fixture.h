// SPDX-License-Identifier: GPL-3.0-or-later
// A server over the fake model on a free port, a control that tests can steer, an HTTP client and a raw socket.
#pragma once

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/guarded.h"
#include "base/net/http_client.h"
#include "chat/completion.h"
#include "http/event_hub.h"
#include "http/server.h"
#include "serve/engine.h"
#include "support/fake_model.h"
#include "support/test_store.h"
#include "support/text_fixture.h"

namespace sluice {

using testing::FakeModel;
using testing::FakeModelOptions;
using nlohmann::json;

// A value that the test sets while the server's threads read it.
template <class T>
class Shared {
 public:
  T get() const {
    MutexLock lock(mu_);
    return value_;
  }
  void set(T value) {
    MutexLock lock(mu_);
    value_ = std::move(value);
  }

 private:
  mutable Mutex mu_;
  T value_ SLUICE_GUARDED_BY(mu_){};
};

class FakeControl : public Control {
 public:
  FakeControl(Store& store, Engine& engine, std::shared_ptr<CompletionService> service) : store_(store), engine_(engine) {
    service_.set(std::move(service));
  }

  ServingPhase phase() const override {
    if (phase_.load() != ServingPhase::kReady) return phase_.load();
    switch (engine_.state()) {
      case ServeState::kReady: return ServingPhase::kReady;
      case ServeState::kPaused: return ServingPhase::kPaused;
      case ServeState::kAsleep: return ServingPhase::kAsleep;
      case ServeState::kStopping: return ServingPhase::kStopping;
    }
    return ServingPhase::kStopping;
  }
  std::shared_ptr<CompletionService> service() const override { return service_.get(); }
  std::vector<ServedModel> models() const override {
    return {{"brief", "fake", store_.serving_version(), "serving", 1}, {"fake", "", kBaseVersion, "serving", 1},
            {"dir/other", "fake", kBaseVersion, "retired", 1}, {"any", "fake", store_.serving_version(), "serving", 1, true}};
  }
  Result<AdapterChoice> resolve_model(const std::string& name) const override {
    if (name.empty() || name == "brief" || name == "any") return AdapterChoice::serving();
    if (name == "fake" || name == "base") return AdapterChoice::base();
    if (name.rfind("brief@", 0) == 0 && name.size() > 6) return AdapterChoice::pinned(VersionId(std::stoll(name.substr(6))));
    return not_found("There is no model " + name);
  }
  std::string base_digest() const override { return "0123456789abcdef"; }
  LiveContext live_context(const CompletionRequest& request) const override {
    return {session_.get(), request.group_key == "c:held" ? Split::kHeldOut : Split::kTrain};
  }
  std::optional<std::array<std::string, 3>> fim_markers() const override { return fim_markers_.get(); }
  std::optional<SamplingDefaults> sampling_defaults() const override { return sampling_defaults_.get(); }
  ServingCounters counters() const override {
    ServingCounters out;
    out.generator = engine_.stats();
    return out;
  }
  const EventHub& events() const override { return *hub_; }
  std::string status_json() const override { return R"({"phase":"ready"})"; }
  Result<GateDocument> gate() const override { return GateDocument{R"({"alpha":0.2})", SettingsId(revision_.load()), "me", "", 5}; }
  Result<SettingsId> put_gate(const std::string& settings, std::optional<SettingsId> if_match, const std::string&,
                              const std::string&) override {
    if (if_match && if_match->value != revision_) return conflict("The settings were changed since").with(Reason::kStale);
    if (settings.find("alpha") == std::string::npos) return invalid_argument("alpha is missing");
    return SettingsId(++revision_);
  }
  Result<DecisionId> decide(const DecisionRequest& r) override {
    if (before_decide_) before_decide_();
    if (r.if_match && *r.if_match != store_.last_decision_id()) return conflict("another decision was made since").with(Reason::kStale);
    DecisionWrite write;
    write.row.version = r.version.valid() ? r.version : kBaseVersion;
    write.row.verdict = r.action == "reject" ? Verdict::kReject : r.action == "hold" ? Verdict::kHold : Verdict::kPromote;
    write.row.actor = r.actor;
    write.row.note = r.note;
    if (r.action == "reject") write.states = {{r.version, VersionState::kRejected}};
    auto done = store_.commit_decision(write);
    if (after_decide_) after_decide_();
    if (!done.ok()) return done.status();
    return done->decision();
  }
  Result<SessionId> start_session(const SessionRequest& r) override {
    if (session_.get().valid()) return conflict("Session 1 runs: end it first");
    if (r.recipe == "none") return not_found("recipe \"none\" was not found");
    SessionRow row;
    row.recipe_name = r.recipe;
    auto id = store_.add_session(row);
    if (id.ok()) session_.set(*id);
    return id;
  }
  Status change_session(SessionId id, SessionAction action) override {
    return store_.set_session_state(id, action == SessionAction::kPause    ? SessionState::kPaused
                                        : action == SessionAction::kResume ? SessionState::kRunning
                                                                           : SessionState::kEnded);
  }

  Status engine_action(EngineAction action, bool weights) override {
    switch (action) {
      case EngineAction::kPause: return engine_.pause();
      case EngineAction::kResume: return engine_.resume();
      case EngineAction::kFlush: return engine_.flush();
      case EngineAction::kSleep: return engine_.sleep(weights);
      case EngineAction::kWake: return engine_.wake();
    }
    return Status();
  }
  Result<std::vector<NewCandidate>> import_adapters(const std::vector<AdapterImport>& wanted) override {
    std::vector<NewCandidate> out;
    for (const AdapterImport& each : wanted) {
      if (each.name == "brief-alias") return conflict("The name is that of an alias");
      if (each.path == "/none") return invalid_argument("/none/adapter_config.json is missing");
      out.push_back({each.name, VersionId(7 + static_cast<std::int64_t>(out.size())), 4, 1000, R"(["q_proj"])"});
    }
    return out;
  }
  Status prune_versions(const std::vector<VersionId>& versions) override {
    for (const VersionId v : versions) SLUICE_RETURN_IF_ERROR(store_.set_version_state(v, VersionState::kPruned));
    return Status();
  }

  std::shared_ptr<EventHub> hub_ = std::make_shared<EventHub>(8);
  std::atomic<ServingPhase> phase_{ServingPhase::kReady};
  std::function<void()> before_decide_, after_decide_;  // set before the server is asked
  Shared<std::shared_ptr<CompletionService>> service_;
  Shared<SessionId> session_;
  Shared<std::optional<std::array<std::string, 3>>> fim_markers_;
  Shared<std::optional<SamplingDefaults>> sampling_defaults_;

 private:
  Store& store_;
  Engine& engine_;
  std::atomic<std::int64_t> revision_{1};
};

// Everything below the server, in the order it must be taken down.
class HttpTest : public ::testing::Test {
 protected:
  void start(FakeModelOptions model = {}, HttpServerOptions options = {}, EngineOptions engine_options = {}) {
    options.port = 0;
    model_ = FakeModel::make(std::move(model));
    slots_ = std::make_unique<AdapterSlots>(model_->adapter_loader(),
                                            [this](VersionId v) { return store_->adapter_folder(v); });
    engine_ = std::make_unique<Engine>(model_, *slots_, engine_options, log_);
    service_ = std::make_shared<CompletionService>(
        *engine_, tokenizer_, template_, &*store_,
        [](VersionId v) { return v == kBaseVersion ? "base" : "brief@" + std::to_string(v.value); }, Clock::system());
    control_ = std::make_unique<FakeControl>(*store_, *engine_, service_);
    store_->add_listener([hub = control_->hub_](const StoreEvent& event) { hub->push(event); });
    SessionRow row;
    control_->session_.set(store_->add_session(row).value());
    auto server = HttpServer::start(options, *store_, *control_, log_);
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(server).value();
    client_ = HttpClient::create(server_->url()).value();
  }
  // A model whose steps wait for leave from gate_.
  FakeModelOptions gated() {
    FakeModelOptions model;
    model.on_step = [this](const testing::FakeStep&) { return gate_.pass(); };
    return model;
  }
  void TearDown() override {
    gate_.open();
    client_.reset();
    server_.reset();
  }

  struct Got {
    int status = 0;
    HttpResponse response;
    json body;
    std::string code() const { return body.contains("error") && body["error"]["code"].is_string() ? body["error"]["code"] : ""; }
    std::string param() const { return body.contains("error") && body["error"]["param"].is_string() ? body["error"]["param"] : ""; }
    std::string header(std::string_view name) const { return std::string(response.header(name)); }
  };
  static Got got(Result<HttpResponse> r) {
    Got out;
    EXPECT_TRUE(r.ok()) << r.status().message();
    if (!r.ok()) return out;
    out.status = r->status;
    out.body = json::parse(r->body, nullptr, false);
    out.response = std::move(r).value();
    return out;
  }
  Got post(const std::string& path, const json& body, HttpHeaders headers = {}) {
    HttpCall call;
    call.headers = std::move(headers);
    return got(client_->post(path, body.dump(), "application/json", call));
  }
  Got get(const std::string& path, HttpHeaders headers = {}) {
    HttpCall call;
    call.headers = std::move(headers);
    return got(client_->get(path, call));
  }
  struct Streamed {
    Got got;
    std::vector<std::string> data;       // of every event
    std::vector<json> chunks;            // those that are JSON
    std::string text(int index = 0) const {
      std::string out;
      for (const json& c : chunks) {
        if (!c.contains("choices")) continue;
        for (const json& choice : c["choices"]) {
          if (choice["index"] != index) continue;
          if (choice.contains("text")) out += choice["text"];
          if (choice.contains("delta") && choice["delta"].contains("content")) out += choice["delta"]["content"];
        }
      }
      return out;
    }
    bool done() const { return !data.empty() && data.back() == "[DONE]"; }
  };
  Streamed stream(const std::string& path, json body, HttpHeaders headers = {}) {
    body["stream"] = true;
    Streamed out;
    HttpCall call;
    call.headers = std::move(headers);
    out.got = got(client_->post_events(path, body.dump(), "application/json", [&](std::string_view data) {
      out.data.emplace_back(data);
      json chunk = json::parse(data, nullptr, false);
      if (!chunk.is_discarded() && chunk.is_object()) out.chunks.push_back(std::move(chunk));
      return true;
    }, call));
    return out;
  }
  // A model that answers everything with this text, then EOS.
  static FakeModelOptions says(const std::string& text) {
    FakeModelOptions options;
    options.answer = [text](VersionId, const std::vector<TokenId>&) { return std::optional<std::string>(text); };
    return options;
  }
  static json chat(const std::string& text) {
    return {{"messages", json::array({{{"role", "user"}, {"content", text}}})}, {"temperature", 0}, {"max_tokens", 12}};
  }
  static json prompt(const std::string& text) { return {{"prompt", text}, {"temperature", 0}, {"max_tokens", 12}}; }

  // ---- raw sockets ----
  int connect_raw() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(server_->port()));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    timeval limit{20, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
  }
  static void send_raw(int fd, const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;  // refused in the middle: the answer tells
      sent += static_cast<std::size_t>(n);
    }
  }
  static std::string read_all(int fd) {
    std::string out;
    char buffer[4096];
    for (ssize_t n; (n = ::recv(fd, buffer, sizeof buffer, 0)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
    return out;
  }
  // One request on a connection of its own; everything the server sent until it closed.
  std::string raw(const std::string& bytes) const {
    const int fd = connect_raw();
    send_raw(fd, bytes);
    const std::string out = read_all(fd);
    ::close(fd);
    return out;
  }
  static std::string post_head(const std::string& path, const std::string& more) {
    return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + more + "\r\n";
  }
  // A request whose answer is not waited for: the connection it comes on, for the test to read and to close.
  int open_post(const std::string& path, const json& body, const std::string& more = "") const {
    const std::string text = body.dump();
    const int fd = connect_raw();
    send_raw(fd, post_head(path, more + "Content-Length: " + std::to_string(text.size()) + "\r\n") + text);
    return fd;
  }
  // What comes up to `end` and with it, not a byte more: all there is where the server closes before.
  static std::string read_until(int fd, const std::string& end) {
    std::string out;
    char c;
    while (out.find(end) == std::string::npos && ::recv(fd, &c, 1, 0) == 1) out += c;
    return out;
  }
  // A streamed answer of a gated model that has begun and is held after `steps`: its connection, for the test to close, and
  // its record.
  struct OpenAnswer {
    int fd = -1;
    std::string record;
  };
  OpenAnswer open_answer(int steps) {
    json body = prompt("p");
    body["stream"] = true;
    const int fd = open_post("/v1/completions", body);
    gate_.allow(steps);
    const std::string head = read_until(fd, "\r\n\r\n");
    const auto at = head.find("rec_");
    if (at == std::string::npos) ADD_FAILURE() << head;
    return {fd, at == std::string::npos ? "" : head.substr(at, 30)};
  }
  std::string del(const std::string& path) const {
    return raw("DELETE " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  }
  void wait_running(std::int64_t n) {
    while (engine_->stats().running + engine_->stats().waiting != n) std::this_thread::yield();
  }

  // What the server answered until it closed, on a connection of its own.
  std::string post_raw(const std::string& path, const json& body) const {
    const std::string text = body.dump();
    return raw(post_head(path, "Connection: close\r\nContent-Length: " + std::to_string(text.size()) + "\r\n") + text);
  }
  // A batch of this one record, as the trainer takes it.
  BatchId batch_of(const std::string& record) {
    BatchRow batch;
    batch.session = control_->session_.get();
    batch.records = {{record}};
    batch.rewards = batch.advantages = batch.weights = {1.0};
    const auto added = store_->add_batch(batch, {}, {});
    EXPECT_TRUE(added.ok()) << added.status().message();
    return added.ok() ? *added : BatchId();
  }
  RecordRow record_of(const json& answer) {
    const auto row = store_->record({answer["sluice"]["record_id"].get<std::string>()});
    EXPECT_TRUE(row.has_value()) << answer;
    return row.value_or(RecordRow());
  }

  std::shared_ptr<const Tokenizer> tokenizer_ = testing::byte_tokenizer();
  std::shared_ptr<const ChatTemplate> template_ = testing::plain_template();
  Log log_;
  testing::StepGate gate_;  // outlives the engine, which may stand in it
  testing::TestStore store_;
  std::shared_ptr<const FakeModel> model_;
  std::unique_ptr<AdapterSlots> slots_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<CompletionService> service_;
  std::unique_ptr<FakeControl> control_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<HttpClient> client_;
};

}  // namespace sluice
