// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/events_api.h"

#include <memory>

#include <nlohmann/json.hpp>

#include "http/api_json.h"
#include "http/event_hub.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Steady = std::chrono::steady_clock;

constexpr auto kPoll = std::chrono::milliseconds(200);  // how often a silent stream looks at its client
constexpr auto kKeepAlive = std::chrono::seconds(15);
constexpr int kMostStreams = 32;                        // each holds a thread

std::string frame(const EventHub& hub, const EventHub::Event& e) {
  Json data = {{"kind", event_kind_name(e.event.kind)}, {"id", e.event.id}};
  if (!e.event.text_id.empty()) data["record_id"] = e.event.text_id;
  return "id: " + hub.wire_id(e.number) + "\nevent: " + event_kind_name(e.event.kind) + "\ndata: " + dump(data) + "\n\n";
}

// Says that events were lost, so that the reader fetches afresh what it shows.
std::string reset_frame(const EventHub& hub, std::int64_t number) {
  return "id: " + hub.wire_id(number) + "\nevent: reset\ndata: {\"kind\":\"reset\"}\n\n";
}

}  // namespace

void EventsApi::add_routes(RouteTable& table) {
  table.add(Scope::kAdmin, "GET", "/sluice/v1/events",
            [this](const HttpRequest& r, const RouteTable::Parts&) { return events(r); });
}

HttpReply EventsApi::events(const HttpRequest& request) {
  // The place is given back when the reply dies, whether or not its stream was ever run.
  std::shared_ptr<void> place(nullptr, [this](void*) { --open_; });
  if (++open_ > kMostStreams) {
    return error_reply(api_error(busy("At most " + std::to_string(kMostStreams) + " readers of events at once")));
  }
  const EventHub& hub = control_.events();
  const std::string_view last = request.header("Last-Event-ID");
  const auto known = hub.parse_wire_id(last);
  const std::int64_t after = known.value_or(hub.newest());
  HttpReply reply;
  reply.content_type = "text/event-stream";
  reply.headers.emplace_back("Cache-Control", "no-cache");
  reply.headers.emplace_back("X-Accel-Buffering", "no");
  reply.stream = [this, after, reset = !last.empty() && !known, place](StreamSink& sink) { stream(after, reset, sink); };
  return reply;
}

void EventsApi::stream(std::int64_t after, bool reset, StreamSink& sink) const {
  const EventHub& hub = control_.events();
  if (!sink.write(reset ? reset_frame(hub, after) : ": open\n\n")) return;
  auto last_write = Steady::now();
  while (!stopping_ && sink.alive()) {
    const EventHub::News news = hub.wait_after(after, Steady::now() + kPoll);
    std::string bytes;
    if (news.missed) bytes += reset_frame(hub, news.events.front().number - 1);
    for (const EventHub::Event& e : news.events) bytes += frame(hub, e);
    if (!news.events.empty()) after = news.events.back().number;
    if (bytes.empty() && Steady::now() - last_write >= kKeepAlive) bytes = ": keep-alive\n\n";
    if (bytes.empty()) continue;
    if (!sink.write(bytes)) return;
    last_write = Steady::now();
  }
}

}  // namespace sluice
