// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdlib>

#include "http/openai.h"
#include "support/text_fixture.h"
#include "targets.h"
#include "text/utf8.h"

namespace sluice::fuzz {

void chat_request(std::string_view input) {
  static const std::shared_ptr<const Tokenizer> tokenizer = testing::byte_tokenizer();
  static const std::shared_ptr<const ChatTemplate> chat_template = testing::plain_template();
  constexpr OpenAiRoute kRoutes[] = {OpenAiRoute::kChat, OpenAiRoute::kText, OpenAiRoute::kFim};
  HttpRequest request;
  request.method = "POST";
  request.headers = {{"Content-Type", "application/json"}};
  const OpenAiRoute route = kRoutes[input.empty() ? 0 : static_cast<unsigned char>(input[0]) % 3];
  request.body = std::string(input.substr(input.empty() ? 0 : 1));
  const OpenAiModel model = {.tokenizer = *tokenizer, .chat_template = chat_template.get(), .fim_markers = {{"<P>", "<S>", "<M>"}},
                             .defaults = std::nullopt};
  OpenAiCall call;
  const auto error = parse_openai_call(request, route, model, &call);
  if (!error) return;
  if (error->status < 400 || error->status > 499 || error->message.empty() || !is_valid_utf8(error_json(*error))) std::abort();
}

}  // namespace sluice::fuzz
