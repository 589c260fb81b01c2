// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/format/gguf.h"

#include "memory_file.h"
#include "targets.h"
#include "text/fim.h"
#include "text/tokenizer.h"

namespace sluice::fuzz {
namespace {

template <class T>
T or_empty(Result<T> result) {
  return result.ok() ? std::move(result).value() : T();
}

void use_vocabulary(const GgufFile& file) {
  Vocabulary v;
  v.model = or_empty(file.get_string("tokenizer.ggml.model"));
  v.pre_tokenizer = or_empty(file.get_string("tokenizer.ggml.pre"));
  v.tokens = or_empty(file.string_array("tokenizer.ggml.tokens"));
  for (const std::int32_t type : or_empty(file.i32_array("tokenizer.ggml.token_type"))) {
    v.types.push_back(static_cast<TokenType>(type));
  }
  v.merges = or_empty(file.string_array("tokenizer.ggml.merges"));
  v.scores = or_empty(file.float_array("tokenizer.ggml.scores"));
  const auto tokenizer = Tokenizer::create(std::move(v));
  if (!tokenizer.ok()) return;
  for (const bool special : {true, false}) {
    const auto ids = (*tokenizer)->encode("a b <s>\xC3\xA9\n", {.parse_special = special});
    if (ids.ok()) (void)(*tokenizer)->decode_text(*ids, false);
  }
  (void)find_fim_format(**tokenizer);
}

}  // namespace

void gguf(std::string_view input) {
  const MemoryFile memory(input);
  const auto file = GgufFile::open(memory.path());
  if (!file.ok()) return;
  std::size_t sum = 0;
  for (const GgufTensor& tensor : (*file)->tensors()) {
    for (const std::byte byte : tensor.bytes) sum += static_cast<std::size_t>(byte);  // all of it must be readable
  }
  if (sum == 1) (void)sum;
  use_vocabulary(**file);
}

}  // namespace sluice::fuzz
