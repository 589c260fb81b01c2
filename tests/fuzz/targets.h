// SPDX-License-Identifier: GPL-3.0-or-later
// The fuzz targets: each takes any bytes and returns; it aborts where an invariant breaks. One source each, linked into a
// libFuzzer program of its own (tests/acceptance/fuzz.sh) and, all together, into fuzz_regression_test.
#pragma once

#include <string_view>

namespace sluice::fuzz {

void gguf(std::string_view input);            // a GGUF file, and the vocabulary in it
void safetensors(std::string_view input);     // a safetensors file
void tokenizer_json(std::string_view input);  // tokenizer.json, then after a NUL text to encode
void chat_template(std::string_view input);   // a template, then after a NUL a message's text
void chat_request(std::string_view input);    // first byte: which route; then a request body
void sse(std::string_view input);             // first byte: how the rest is cut

}  // namespace sluice::fuzz
