// SPDX-License-Identifier: GPL-3.0-or-later
// Tokenizer and chat template that fit the fake model: one token a byte, the specials of fake_model.h, plain ChatML. So
// fake_tokens(text) is what the tokenizer makes of any text without specials.
#pragma once

#include <functional>
#include <memory>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace sluice::testing {

// `change` may add what a test needs: a bos, markers.
std::shared_ptr<const Tokenizer> byte_tokenizer(const std::function<void(Vocabulary&)>& change = nullptr);
std::shared_ptr<const ChatTemplate> plain_template();
// ChatML that writes the tools in front, and an assistant's calls, as JSON.
std::shared_ptr<const ChatTemplate> tools_template();

}  // namespace sluice::testing
