// SPDX-License-Identifier: GPL-3.0-or-later
// The whole path from request to record on the fake model and a real store. One test's.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "chat/completion.h"
#include "serve/engine.h"
#include "support/fake_model.h"
#include "support/temp_folder.h"
#include "support/test_store.h"
#include "support/text_fixture.h"

namespace sluice::testing {

// A limit no healthy run comes near: a test that would hang fails instead.
inline SteadyTime far() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

class ChatUnderTest {
 public:
  explicit ChatUnderTest(FakeModelOptions model_options = {}, EngineOptions options = {})
      : model(FakeModel::make(std::move(model_options))),
        slots(model->adapter_loader(), [this](VersionId) { return folder.path(); }),
        engine(model, slots, options, log),
        tokenizer(byte_tokenizer()),
        chat(engine, tokenizer, plain_template(), &*store, TestStore::name_of, Clock::system()) {
    write_fake_adapter(folder.path());
  }

  VersionId publish_new() {
    const VersionId version = store.new_version();
    EXPECT_TRUE(slots.publish(store.promote(version)).ok());
    return version;
  }
  std::unique_ptr<Exchange> start(CompletionRequest request) {
    Result<std::unique_ptr<Exchange>> exchange = chat.start(std::move(request));
    EXPECT_TRUE(exchange.ok()) << exchange.status().message();
    return exchange.ok() ? std::move(exchange).value() : nullptr;
  }

  TempFolder folder;
  Log log;
  TestStore store;
  std::shared_ptr<const FakeModel> model;
  AdapterSlots slots;
  Engine engine;
  std::shared_ptr<const Tokenizer> tokenizer;
  CompletionService chat;
};

// Everything one exchange told, by choice.
struct Told {
  std::map<int, std::string> text;
  std::map<int, std::vector<std::string>> pieces;
  std::map<int, std::vector<TokenLogprob>> logprobs;
  std::map<int, TextEvent> finish;
};

inline Told drain(Exchange& exchange) {
  Told told;
  while (!exchange.done()) {
    std::optional<TextEvent> event = exchange.next(far());
    if (!event) {
      ADD_FAILURE() << "no event came";
      return told;
    }
    for (const TokenLogprob& l : event->logprobs) told.logprobs[event->choice].push_back(l);
    if (event->kind == TextEvent::Kind::kFinish) {
      EXPECT_FALSE(told.finish.contains(event->choice)) << "one end per choice";
      told.finish[event->choice] = *event;
      continue;
    }
    EXPECT_FALSE(told.finish.contains(event->choice)) << "nothing after the end";
    told.text[event->choice] += event->text;
    if (!event->text.empty()) told.pieces[event->choice].push_back(event->text);
  }
  EXPECT_FALSE(exchange.next(far()).has_value());
  return told;
}

inline CompletionRequest text_request(const std::string& prompt, int max_tokens = 12) {
  CompletionRequest r;
  r.prompt = prompt;
  r.max_tokens = max_tokens;
  r.sampling.temperature = 0;
  r.route = "completions";
  return r;
}

inline CompletionRequest chat_request(const std::string& user, int max_tokens = 12) {
  CompletionRequest r;
  ChatMessage message;
  message.role = "user";
  message.content = user;
  r.messages = {message};
  r.max_tokens = max_tokens;
  r.sampling.temperature = 0;
  r.route = "chat";
  return r;
}

// A model that answers every prompt with this text, then EOS.
inline FakeModelOptions answering(std::string text) {
  FakeModelOptions options;
  options.answer = [text](VersionId, const std::vector<TokenId>&) { return text; };
  return options;
}

}  // namespace sluice::testing
