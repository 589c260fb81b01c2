// SPDX-License-Identifier: GPL-3.0-or-later
#include "support/text_fixture.h"

#include <cstdio>
#include <cstdlib>

#include "support/fake_model.h"
#include "text/byte_alphabet.h"

namespace sluice::testing {

std::shared_ptr<const Tokenizer> byte_tokenizer(const std::function<void(Vocabulary&)>& change) {
  Vocabulary vocabulary;
  vocabulary.pre_tokenizer = "gpt-2";
  for (int b = 0; b < 256; ++b) {
    vocabulary.tokens.push_back(bytes_to_alphabet(std::string(1, static_cast<char>(b))));
    vocabulary.types.push_back(TokenType::kNormal);
  }
  for (const char* special : {"<|im_start|>", "<|im_end|>", "<|endoftext|>"}) {
    vocabulary.tokens.push_back(special);
    vocabulary.types.push_back(TokenType::kControl);
  }
  vocabulary.eos = kFakeEos;
  vocabulary.end_of_generation = {kFakeEndOfText};
  if (change) change(vocabulary);
  Result<std::shared_ptr<const Tokenizer>> made = Tokenizer::create(std::move(vocabulary));
  if (!made.ok()) {
    std::fprintf(stderr, "byte_tokenizer: %s\n", made.status().message().c_str());
    std::abort();
  }
  return *made;
}

std::shared_ptr<const ChatTemplate> plain_template() { return ChatTemplate::chatml(); }

std::shared_ptr<const ChatTemplate> tools_template() {
  Result<std::shared_ptr<const ChatTemplate>> made = ChatTemplate::create(
      "{% if tools %}{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}{% endif %}"
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
      "{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}{% endif %}"
      "<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
      "", "<|im_end|>");
  if (!made.ok()) {
    std::fprintf(stderr, "tools_template: %s\n", made.status().message().c_str());
    std::abort();
  }
  return *made;
}

}  // namespace sluice::testing
