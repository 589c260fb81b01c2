// SPDX-License-Identifier: GPL-3.0-or-later
#include "tasks/driver.h"

#include <algorithm>
#include <exception>

#include "tasks/driver_json.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr int kTries = 8;                        // for an exchange the server is too busy for
constexpr milliseconds kFirstPause{100};         // doubles with each try
constexpr milliseconds kLongestPause{3000};
constexpr milliseconds kLookAgain{250};          // the trainer's appetite is asked for this often even without notify()
constexpr const char* kJson = "application/json";

// Busy, or a verdict that came before the record was closed (serving.md §2.2).
bool worth_another_try(const HttpResponse& answer) {
  const bool open = answer.status == 409 && answer.body.find("record_open") != std::string::npos;
  return answer.status == 429 || answer.status == 503 || open;
}
bool worth_another_try(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kDeadline;
}

}  // namespace

struct Driver::Job {
  const TaskPrompt* prompt = nullptr;
  std::int64_t number = 0;
  std::uint64_t seed = 0;
};

Result<std::unique_ptr<Driver>> Driver::create(TaskRecipe recipe, DriverOptions options) {
  if (recipe.train.empty()) return invalid_argument("recipe \"" + recipe.name + "\" has no prompts to train on");
  if (options.concurrency < 1) return invalid_argument("the driver needs at least one request in flight");
  if (Result<std::unique_ptr<HttpClient>> client = HttpClient::create(options.base_url); !client.ok()) return client.status();
  return std::unique_ptr<Driver>(new Driver(std::move(recipe), std::move(options)));
}

Driver::Driver(TaskRecipe recipe, DriverOptions options)
    : recipe_(std::move(recipe)),
      options_(std::move(options)),
      user_(recipe_.user),
      stream_(recipe_.train, options_.seed),
      max_requests_(options_.max_requests) {
  stream_.skip(options_.already_sent);
  counts_.sent = counts_.finished = options_.already_sent;
}

Driver::~Driver() { stop(); }

void Driver::start(bool paused) {
  {
    MutexLock lock(mu_);
    counts_.paused = paused;
    update_done();  // a resumed session may have sent its last request before
  }
  for (int i = 0; i < options_.concurrency; ++i) threads_.emplace_back([this] { work(); });
}

void Driver::pause() {
  MutexLock lock(mu_);
  counts_.paused = true;
}

void Driver::resume() {
  MutexLock lock(mu_);
  counts_.paused = false;
  changed_.notify_all();
}

void Driver::notify() {
  MutexLock lock(mu_);
  changed_.notify_all();
}

void Driver::set_max_requests(std::int64_t max_requests) {
  MutexLock lock(mu_);
  max_requests_ = max_requests;
  update_done();
  changed_.notify_all();
}

void Driver::stop() {
  cancel_.cancel();
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

bool Driver::wait_done(Steady::time_point deadline) {
  MutexLock lock(mu_);
  while (!counts_.done && !stopping_) {
    if (!changed_.wait_until(mu_, deadline)) return counts_.done || stopping_;
  }
  return true;
}

DriverCounts Driver::counts() const {
  MutexLock lock(mu_);
  return counts_;
}

void Driver::update_done() {
  counts_.done = max_requests_ > 0 && counts_.sent >= max_requests_ && counts_.in_flight == 0;
}

bool Driver::take(Job& job) {
  for (;;) {
    const std::int64_t labelled = options_.waiting ? options_.waiting() : 0;
    MutexLock lock(mu_);
    if (stopping_) return false;
    const bool more = max_requests_ == 0 || counts_.sent < max_requests_;
    const bool room = !options_.waiting || labelled + counts_.in_flight < options_.max_waiting;
    counts_.waiting = more && !counts_.paused && !room;
    if (more && room && !counts_.paused) {
      const PromptStream::Next next = stream_.next();
      job = {next.prompt, next.number, next.seed};
      ++counts_.sent;
      ++counts_.in_flight;
      return true;
    }
    changed_.wait_until(mu_, Steady::now() + kLookAgain);
  }
}

void Driver::work() {
  const Result<std::unique_ptr<HttpClient>> client = HttpClient::create(options_.base_url);
  if (!client.ok()) return;  // create() has tried the same URL
  Job job;
  while (take(job)) {
    DriverEvent event;
    try {
      event = run(**client, job);
    } catch (const std::exception& error) {
      event.error = error.what();
    }
    event.number = job.number;
    event.prompt_id = job.prompt->id;
    event.prompt = job.prompt->text;
    finish(event);
  }
}

// Counts and tells; a request stays in flight until its listener has returned, so wait_done() means all were told.
void Driver::finish(const DriverEvent& event) {
  {
    MutexLock lock(mu_);
    while (telling_) changed_.wait(mu_);
    telling_ = true;
  }
  const bool stopped = cancel_.cancelled() && !event.error.empty();
  if (!event.error.empty() && !stopped && options_.log != nullptr) {
    options_.log->warning("session", "request " + std::to_string(event.number) + " of the stream failed: " + event.error);
  }
  if (options_.on_event && !stopped) options_.on_event(event);
  MutexLock lock(mu_);
  telling_ = false;
  --counts_.in_flight;
  ++counts_.finished;
  counts_.failed += !event.error.empty();
  counts_.accepted += event.error.empty() && event.accepted;
  counts_.rejected += event.error.empty() && !event.accepted;
  update_done();
  changed_.notify_all();
}

HttpCall Driver::call() const {
  HttpCall call;
  if (!options_.api_key.empty()) call.headers.emplace_back("Authorization", "Bearer " + options_.api_key);
  call.cancel = cancel_;
  return call;
}

bool Driver::pause_for(milliseconds time) {
  const Steady::time_point until = Steady::now() + time;
  MutexLock lock(mu_);
  while (!stopping_ && Steady::now() < until) changed_.wait_until(mu_, until);
  return !stopping_;
}

// A busy server is asked again, as a polite client does; any other refusal is final.
Result<HttpResponse> Driver::post(HttpClient& client, const std::string& path, const std::string& body, const HttpCall& call) {
  milliseconds pause = kFirstPause;
  for (int attempt = 1;; ++attempt) {
    Result<HttpResponse> answer = client.post(path, body, kJson, call);
    const bool again = answer.ok() ? worth_another_try(*answer) : worth_another_try(answer.status());
    if (!again || attempt == kTries || !pause_for(pause)) return answer;
    pause = std::min(2 * pause, kLongestPause);
  }
}

DriverEvent Driver::run(HttpClient& client, const Job& job) {
  DriverEvent event;
  HttpCall chat = call();
  chat.headers.emplace_back("X-Session-Id", recipe_.name + "-" + std::to_string(options_.seed) + "-" + std::to_string(job.number));
  chat.headers.emplace_back("X-Session-Done", "1");
  chat.headers.emplace_back("X-Sluice-Stream", recipe_.name);  // a verdict follows at once: this stream keeps its order
  const Result<HttpResponse> answer =
      post(client, kChatPath, chat_request_json(recipe_, *job.prompt, options_.model, job.seed), chat);
  if (!answer.ok()) {
    event.error = answer.status().message();
    return event;
  }
  if (answer->status != 200) {
    event.error = error_text(answer->status, answer->body);
    return event;
  }
  const Result<ChatReply> reply = parse_chat_reply(answer->body);
  if (!reply.ok()) {
    event.error = reply.status().message();
    return event;
  }
  event.record_id = reply->record_id;
  event.completion = reply->text;
  event.adapter = reply->adapter;
  event.version = reply->version;
  const UserVerdict verdict = user_.judge({reply->text, reply->finish_reason == "stop", &job.prompt->names});
  event.accepted = verdict.accepted;
  event.reason = verdict.reason;
  event.detail = verdict.detail;
  if (options_.give_feedback) send_verdict(client, event);
  return event;
}

void Driver::send_verdict(HttpClient& client, DriverEvent& event) {
  const std::string body =
      feedback_request_json({event.record_id, event.accepted, user_.name(), event.reason, event.detail});
  const Result<HttpResponse> answer = post(client, "/sluice/v1/feedback", body, call());
  if (!answer.ok()) {
    event.error = "feedback: " + answer.status().message();
    return;
  }
  if (answer->status != 200) {
    event.error = "feedback: " + error_text(answer->status, answer->body);
    return;
  }
  const Result<std::string> state = parse_feedback_state(answer->body);
  if (!state.ok()) {
    event.error = state.status().message();
    return;
  }
  event.feedback_state = *state;
}

}  // namespace sluice
