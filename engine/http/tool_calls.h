// SPDX-License-Identifier: GPL-3.0-or-later
// Finds <tool_call>{"name":...,"arguments":{...}}</tool_call> in an answer that arrives in pieces (serving.md §1.3). A block
// that holds no such object stays text. White space next to a block is no content. What comes out, joined, does not depend
// on where the pieces are cut. Used by one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

struct ToolCall {
  std::string id;         // "call_..."
  std::string name;
  std::string arguments;  // JSON text of an object
};

class ToolCallReader {
 public:
  // What became certain.
  struct Piece {
    std::string content;
    std::vector<ToolCall> calls;
  };
  Piece push(std::string_view text);
  // What was held back, when the answer ends: a block that was not closed is text.
  Piece flush();

 private:
  bool take_text(Piece& out);   // false: nothing more can be decided yet
  bool take_block(Piece& out);
  void skip_space();

  std::string held_;            // not told yet; a block, from its mark on, when in_block_
  std::string space_;           // in front of the block
  std::size_t sought_ = 0;      // of held_: no closing mark begins before here
  bool in_block_ = false;
  bool after_block_ = false;    // white space still belongs to the block before
};

}  // namespace sluice
