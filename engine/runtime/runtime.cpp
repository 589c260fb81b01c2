// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/runtime.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "release/what_if.h"
#include "release/gate_json.h"
#include "runtime/runtime_impl.h"

namespace sluice {

namespace {

SteadyTime after(double seconds) {
  return Clock::system().steady() + std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6));
}

}  // namespace

int half_the_cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 2); }

Runtime::Impl::Impl(RuntimeOptions o, Log& l, std::unique_ptr<Store> s)
    : options(std::move(o)),
      log(l),
      store(std::move(s)),
      recipe_folder(options.recipe_folder.empty() ? default_recipe_folder() : options.recipe_folder) {
  EngineState first;
  first.data_folder = store->folder();
  first.serving = store->serving_version();
  first.loading_text = "Opening the workspace";
  state = std::make_shared<const EngineState>(std::move(first));
}

void Runtime::Impl::start() {
  store->add_listener([this](const StoreEvent& event) { on_store_event(event); });
  commander = std::thread([this] { command_loop(); });
  asker = std::thread([this] { ask_loop(); });
  housekeeper = std::thread([this] { housekeeping_loop(); });
  const std::string path = options.model_path.empty() ? find_bundled_model() : options.model_path;
  loader = std::thread([this, path] { load(path); });
}

Runtime::Impl::~Impl() {
  stopping = true;
  {
    MutexLock lock(mu);
    phase = EnginePhase::kStopping;
    changed.notify_all();
  }
  commands.close();
  asks.close();
  if (loader.joinable()) loader.join();
  if (commander.joinable()) commander.join();
  // A session that runs stays in state running in its row: the next start brings it back, paused.
  stop_session();
  if (const auto s = serving()) s->engine->cancel_all();
  if (asker.joinable()) asker.join();
  close_server();
  if (const auto s = serving()) s->engine->stop();
  events.close();
  if (housekeeper.joinable()) housekeeper.join();
  MutexLock lock(mu);
  serving_.reset();
}

void Runtime::Impl::note(LogLevel level, const std::string& category, const std::string& text, const std::string& link) {
  log.write(level, category, text);
  if (level == LogLevel::kError) ++errors;
  if (level == LogLevel::kDebug) return;
  LogRow row;
  row.level = log_level_name(level);
  row.category = category;
  row.text = text;
  row.link = link;
  store->add_log(std::move(row));
}

void Runtime::Impl::load(std::string path) {
  const auto fail = [this](const std::string& reason) {
    note(LogLevel::kError, "model", reason);
    MutexLock lock(mu);
    phase = EnginePhase::kModelFailed;
    model_error = reason;
    changed.notify_all();
  };
  if (path.empty()) {
    return fail("The bundled model is not on this machine: run packaging/fetch.sh, or choose a GGUF file of your own.");
  }
  {
    MutexLock lock(mu);
    phase = EnginePhase::kLoading;
    loading_text = "Reading " + path.substr(path.rfind('/') + 1);
    model_path = path;
    model_error.clear();
  }
  if (const auto fit = Runtime::model_fit(path); fit.ok() && !fit->fits) return fail(fit->text + " Nothing was loaded.");
  auto system = load_system(path);
  if (!system.ok()) return fail(system.status().message());
  if (stopping) return;
  if (Status s = build_serving(std::move(system).value()); !s.ok()) return fail(s.message());
  if (options.serve_http && !stopping) start_server(options.host, options.port);
  if (!stopping) resume_session();
  MutexLock lock(mu);
  phase = EnginePhase::kReady;
  changed.notify_all();
}

Status Runtime::Impl::build_serving(LoadedSystem system) {
  auto s = std::make_shared<Serving>();
  s->system = std::move(system);
  s->slots = std::make_unique<AdapterSlots>(s->system.model->adapter_loader(),
                                            [this](VersionId v) { return store->adapter_folder(v); });
  EngineOptions engine;
  engine.context.kv_tokens = options.kv_tokens;
  engine.context.threads = options.engine_threads > 0 ? options.engine_threads : half_the_cores();
  s->engine = std::make_unique<Engine>(s->system.model, *s->slots, engine, log);
  s->service = std::make_unique<CompletionService>(*s->engine, s->system.tokenizer, s->system.chat_template, store.get(),
                                                   [this](VersionId v) { return name_of(v); }, Clock::system());
  RegistryOptions registry;
  registry.on_pinnable = [slots = s->slots.get()](std::set<VersionId> versions) { slots->set_pinnable(std::move(versions)); };
  registry.on_decision = [this](const DecisionRow& row) { on_decision(row); };
  registry.on_swap = [this](const SwapNotice& notice) { on_swap(notice); };
  registry.log = &log;
  s->registry = std::make_unique<Registry>(*store, *s->slots, registry);
  SLUICE_ASSIGN_OR_RETURN(const StartReport report, s->registry->start());
  if (report.recovered) note(LogLevel::kWarning, "gate", report.note, "version:" + std::to_string(report.serving.value));
  const ModelInfo& info = s->system.model->info();
  note(LogLevel::kInfo, "model", "Loaded " + info.name + " (" + info.quantisation + ", " +
                                     std::to_string(info.parameters / 1'000'000) + " M parameters); " + name_of(report.serving) +
                                     " serves.");
  if (!s->system.chat_template) note(LogLevel::kWarning, "model", "This model cannot chat: " + s->system.chat_error);
  MutexLock lock(mu);
  serving_ = std::move(s);
  return {};
}

void Runtime::Impl::close_server() {
  // A handler that waits for the command thread, which may be this one, must not be waited for in turn.
  server_moving = true;
  server.reset();
  server_moving = false;
}

void Runtime::Impl::start_server(const std::string& host, int port) {
  close_server();
  const auto s = serving();
  control = std::make_unique<HttpControl>(*this);
  HttpServerOptions http;
  http.host = host;
  http.port = port;
  http.api_keys = options.api_keys;
  http.behind_proxy = options.behind_proxy;
  auto started = HttpServer::start(http, *s->service, *store, *control, log);
  MutexLock lock(mu);
  if (started.ok()) {
    server = std::move(started).value();
    server_url = server->url();
    server_error.clear();
  } else {
    server_url.clear();
    server_error = started.status().message();
    log.error("http", server_error);
  }
}

void Runtime::Impl::resume_session() {
  // The newest session that was not ended when the program stopped, brought back paused: nothing starts by itself.
  std::optional<SessionRow> open;
  for (SessionRow& row : store->sessions()) {
    if (row.state != SessionState::kEnded) open = std::move(row);
  }
  if (!open || !options.resume_paused) return;
  auto recipe = parse_recipe(open->recipe_json, "session " + std::to_string(open->id.value));
  if (!recipe.ok()) return note(LogLevel::kError, "session", "The last session can't go on: " + recipe.status().message());
  const auto max = store->value("session." + std::to_string(open->id.value) + ".max_requests");
  auto session = open_session(std::move(recipe).value(), *open, max ? std::strtoll(max->c_str(), nullptr, 10) : 0);
  if (!session.ok()) return note(LogLevel::kError, "session", "The last session can't go on: " + session.status().message());
  if (Status s = store->set_session_state(open->id, SessionState::kPaused); !s.ok()) {
    return note(LogLevel::kError, "session", s.message());
  }
  (*session)->start(true);
  note(LogLevel::kInfo, "session", "Session \"" + open->name + "\" is back, paused.");
}

void Runtime::Impl::stop_session() {
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mu);
    session = std::move(session_);
    session_.reset();
  }
  if (session) session->stop();
}

std::shared_ptr<Session> Runtime::Impl::session() const {
  MutexLock lock(mu);
  return session_;
}

std::shared_ptr<Serving> Runtime::Impl::serving() const {
  MutexLock lock(mu);
  return serving_;
}

std::string Runtime::Impl::name_of(VersionId version) const {
  if (version == kBaseVersion) return "base";
  const auto row = store->version(version);
  return (row ? row->name : std::string("version")) + "@" + std::to_string(version.value);
}

std::string Runtime::Impl::adapter_name() const {
  if (const auto s = session()) return s->recipe().task.name;
  const auto versions = store->versions();
  return versions.size() > 1 ? versions.back().name : "sluice";
}

void Runtime::Impl::on_store_event(const StoreEvent& event) {
  if (const auto s = session()) s->on_store_event(event);
  StoreEvent copy = event;
  events.try_push(copy);
  std::vector<StoreListener> copies;
  {
    MutexLock lock(mu);
    copies = listeners;
  }
  for (const StoreListener& listener : copies) listener(event);
}

void Runtime::Impl::on_decision(const DecisionRow& row) {
  if (const auto s = session()) s->on_decision(row);
  if (row.kind != "startup") {
    note(LogLevel::kInfo, "gate", row.reason_text, "version:" + std::to_string(row.version.value));
  }
}

void Runtime::Impl::on_swap(const SwapNotice& notice) {
  last_swap_us = notice.microseconds;
  ++swaps;
  swap_us_sum += notice.microseconds;
  std::function<void(const SwapNotice&)> listener;
  {
    MutexLock lock(mu);
    listener = on_swap_notice;
  }
  if (listener) listener(notice);
  note(LogLevel::kInfo, "serve", name_of(notice.to) + " serves instead of " + name_of(notice.from) + " (" +
                                     std::to_string(notice.microseconds) + " us).", "version:" + std::to_string(notice.to.value));
}

std::uint64_t Runtime::Impl::submit(Command command, std::function<void(const CommandOutcome&)> done) {
  const std::uint64_t number = ++next_command;
  auto& queue = std::holds_alternative<Ask>(command) ? asks : commands;
  Queued item{std::move(command), std::move(done)};
  if (!queue.try_push(item) && item.done) {
    CommandOutcome refused;
    refused.status = busy("Too many commands wait, or the engine is stopping: try again in a moment.");
    refused.text = refused.status.message();
    item.done(refused);
  }
  return number;
}

CommandOutcome Runtime::Impl::run_and_wait(Command command, const std::atomic<bool>* give_up) {
  struct Waiter {
    Mutex mu;
    CondVar cv;
    std::optional<CommandOutcome> outcome SLUICE_GUARDED_BY(mu);
  };
  auto waiter = std::make_shared<Waiter>();
  submit(std::move(command), [waiter](const CommandOutcome& outcome) {
    MutexLock lock(waiter->mu);
    waiter->outcome = outcome;
    waiter->cv.notify_all();
  });
  MutexLock lock(waiter->mu);
  while (!waiter->outcome) {
    if (give_up && *give_up) {
      CommandOutcome left;
      left.status = unavailable("The server is moving: the command may still be carried out.");
      left.text = left.status.message();
      return left;
    }
    waiter->cv.wait_until(waiter->mu, after(0.1));
  }
  return *waiter->outcome;
}

CommandOutcome Runtime::Impl::run_from_http(Command command) { return run_and_wait(std::move(command), &server_moving); }

// ---- Runtime ----

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Runtime::~Runtime() = default;

Result<std::unique_ptr<Runtime>> Runtime::open(RuntimeOptions options, Log& log) {
  if (options.port < 0 || options.port > 65535) {
    return invalid_argument("port " + std::to_string(options.port) + " is none: give 0 to 65535");
  }
  StoreOptions store_options;
  store_options.folder = options.data_folder;
  SLUICE_ASSIGN_OR_RETURN(auto store, Store::open(store_options));
  auto impl = std::make_unique<Impl>(std::move(options), log, std::move(store));
  impl->start();
  return std::unique_ptr<Runtime>(new Runtime(std::move(impl)));
}

std::shared_ptr<const EngineState> Runtime::snapshot() const {
  MutexLock lock(impl_->mu);
  return impl_->state;
}

std::uint64_t Runtime::submit(Command command, std::function<void(const CommandOutcome&)> done) {
  return impl_->submit(std::move(command), std::move(done));
}

CommandOutcome Runtime::run(Command command) { return impl_->run_and_wait(std::move(command), nullptr); }

const Store& Runtime::store() const { return *impl_->store; }

void Runtime::add_listener(StoreListener listener) {
  MutexLock lock(impl_->mu);
  impl_->listeners.push_back(std::move(listener));
}

std::vector<RecipeSummary> Runtime::recipes() const {
  std::vector<RecipeSummary> out;
  for (const std::string& name : recipe_names(impl_->recipe_folder)) {
    const auto recipe = load_recipe(name, impl_->recipe_folder);
    if (recipe.ok()) out.push_back({name, recipe->task.title, recipe->task.summary, recipe->path});
  }
  return out;
}

std::string Runtime::gate_settings_json(SettingsId* id) const {
  const auto stored = stored_gate_settings(*impl_->store);
  if (id) *id = stored.ok() ? stored->id : SettingsId();
  return gate_settings_to_json(stored.ok() ? stored->settings : gate_preset(GateProfile::kStandard));
}

Result<WhatIfSummary> Runtime::what_if(const std::string& draft_json) const {
  SLUICE_ASSIGN_OR_RETURN(const auto stored, stored_gate_settings(*impl_->store));
  SLUICE_ASSIGN_OR_RETURN(const GateSettings draft, gate_settings_from_json(draft_json, stored.settings));
  constexpr int kDecisions = 500;
  WhatIfSummary summary;
  for (const WhatIfRow& row : sluice::what_if(*impl_->store, draft, kDecisions)) {
    ++summary.decisions;
    summary.recorded_rejects += row.was == Verdict::kReject;
    summary.draft_rejects += row.would_be == Outcome::kReject;
    summary.need_more += row.would_be == Outcome::kNeedsMore;
    if (row.differs) {
      ++summary.differ;
      summary.different.push_back(row.decision);
    }
  }
  std::reverse(summary.different.begin(), summary.different.end());
  return summary;
}

namespace {

std::string gigabytes(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", static_cast<double>(bytes) / 1e9);
  return text;
}

}  // namespace

Result<ModelFit> Runtime::model_fit(const std::string& path) {
  constexpr std::int64_t kKvTokens = 16384;
  ModelFit fit;
  SLUICE_ASSIGN_OR_RETURN(fit.needed_bytes, estimate_memory(path, kKvTokens));
  fit.free_bytes = available_memory();
  fit.fits = fit.free_bytes == 0 || fit.needed_bytes <= fit.free_bytes;
  fit.text = "This model needs " + gigabytes(fit.needed_bytes) + "; " + gigabytes(fit.free_bytes) + " are free.";
  return fit;
}

std::string Runtime::bundled_model_path() { return find_bundled_model(); }

std::string Runtime::default_data_folder(const std::string& workspace_name) {
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  const std::string root = data && *data ? data : std::string(home ? home : ".") + "/.local/share";
  return root + "/sluice/" + workspace_name;
}

void Runtime::on_request(std::function<void(const DriverEvent&)> listener) {
  MutexLock lock(impl_->mu);
  impl_->on_request = std::move(listener);
}

void Runtime::on_swap(std::function<void(const SwapNotice&)> listener) {
  MutexLock lock(impl_->mu);
  impl_->on_swap_notice = std::move(listener);
}

bool Runtime::wait_session_finished(double seconds) {
  const auto session = impl_->session();
  return session && session->wait_finished(after(seconds));
}

Result<HeldOutScore> Runtime::measure_held_out(VersionId version, int n) {
  const auto session = impl_->session();
  if (!session) return conflict("No session runs: its recipe has the held-out prompts.");
  return session->measure_held_out(version, n, &impl_->stopping);
}

Status Runtime::wait_ready(double seconds) {
  const SteadyTime deadline = after(seconds);
  {
    MutexLock lock(impl_->mu);
    while (impl_->phase == EnginePhase::kLoading) {
      if (!impl_->changed.wait_until(impl_->mu, deadline)) return deadline_exceeded("The model is still loading.");
    }
    if (impl_->phase == EnginePhase::kModelFailed) return unavailable(impl_->model_error);
    if (impl_->phase == EnginePhase::kStopping) return unavailable("The engine is stopping.");
  }
  impl_->publish_snapshot();  // whoever waited reads what is there now, not what was a quarter of a second ago
  return {};
}

}  // namespace sluice
