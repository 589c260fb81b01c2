// SPDX-License-Identifier: GPL-3.0-or-later
// Messages -> prompt, by the model's own Jinja template. The prompt comes in segments that tell the template's text from
// the client's, so that a message spelling a turn marker stays ordinary text.
// Immutable once created; any number of threads may share one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/data_value.h"
#include "text/tokenizer.h"

namespace sluice {

struct ChatMessage {
  std::string role;     // "system", "user", "assistant", "tool" ...
  DataValue content;    // text; null; or a list of parts where the template knows them
  std::string name;     // left out of the template's view when empty, as are the next two
  std::string tool_call_id;
  DataValue tool_calls;  // a list of {id, type, function: {name, arguments}}
  DataValue::Dict extra;  // further keys, seen by the template as message.<key>
};

struct RenderOptions {
  bool add_generation_prompt = true;   // end with the opening of the assistant's turn
  bool continue_final_message = false;  // end right after the last message's text instead; excludes the former
  DataValue tools = {};                      // null or a list of tool descriptions
  DataValue documents = {};                  // null or a list
  DataValue::Dict kwargs = {};               // further names the template may read (chat_template_kwargs)
  std::int64_t now_unix = -1;           // time for strftime_now, in seconds UTC; -1 = the clock
};

class ChatTemplate {
 public:
  // kInvalidArgument with the line for what the subset of serving.md 4.4 does not hold. bos and eos are the texts that
  // the template sees as bos_token and eos_token.
  static Result<std::shared_ptr<const ChatTemplate>> create(std::string source, std::string bos_text,
                                                            std::string eos_text);
  // The plain ChatML form: <|im_start|>role\ntext<|im_end|>\n. Only for vocabularies that hold both markers.
  static std::shared_ptr<const ChatTemplate> chatml();
  // The template of a model file; plain ChatML where it has none but holds the markers; else kInvalidArgument (the model
  // can complete text but not chat).
  static Result<std::shared_ptr<const ChatTemplate>> for_model(const Vocabulary& vocabulary,
                                                               const Tokenizer& tokenizer);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // The prompt; neighbouring segments differ in special_allowed, none is empty. kInvalidArgument when the template
  // raises (its own words are in the message), meets something undefined, or passes its step or output limit.
  Result<std::vector<Segment>> render(const std::vector<ChatMessage>& messages, const RenderOptions& options = {}) const;

  // Is it a name that the template finds set anyhow, such as messages? No argument of RenderOptions::kwargs may have it.
  static bool is_taken(std::string_view name);

  const std::string& source() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<const Impl> impl);

  const std::unique_ptr<const Impl> impl_;
};

// The prompt as one text, to be shown or stored.
std::string join_segments(const std::vector<Segment>& segments);

// Ids of a rendered prompt, with one bos at the front where the vocabulary asks for it or the template wrote it.
Result<std::vector<std::int32_t>> encode_segments(const Tokenizer& tokenizer, const std::vector<Segment>& segments);

}  // namespace sluice
