// SPDX-License-Identifier: GPL-3.0-or-later
// One forward pass of serving over rows of several sequences and adapter versions. Rows of decode and of short prefill
// pieces run on the decode kernels (kernels/matvec.h), longer pieces on the integer GEMM (kernels/gemm.h): each result
// depends on its own row only, bit for bit, whatever else is in the step and however the work is split. Types without an
// integer kernel run longer pieces as f32 GEMM on dequantised panels. Owns its scratch, which only grows: decode
// allocates nothing once warm. One thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/kernels/attention.h"
#include "model/kernels/matvec.h"
#include "model/kernels/prefetch.h"
#include "model/kv_cache.h"
#include "model/lora.h"
#include "model/weights.h"
#include "model/work_pool.h"

namespace sluice {

// Up to this many new tokens of a sequence stay on the decode kernels; measured crossover with the GEMM.
inline constexpr int kIntegerRows = 48;

// New tokens of one sequence, already taken by the cache: positions first_position .. + count - 1.
struct PassPiece {
  const TokenId* tokens = nullptr;
  int count = 0;
  int first_position = 0;
  const std::vector<int>* blocks = nullptr;  // of the whole sequence
  const LoraAdapter* adapter = nullptr;      // null: base
};

class ForwardPass {
 public:
  ForwardPass(std::shared_ptr<const TransformerWeights> weights, KvCache& cache, WorkPool& pool);

  // Fills the cache and leaves the hidden state of every row. Token ids must be inside the vocabulary.
  void run(std::span<const PassPiece> pieces);

  // A row of the last run: token `index` of piece `piece`.
  struct RowRef {
    int piece = 0;
    int index = 0;
  };
  // Logits of the given rows, [rows, vocab], on the integer kernel. Valid until the next call.
  const float* logits(std::span<const RowRef> rows);
  // The same for many rows (scoring), through the GEMM where that is faster. At most kScoreRows.
  const float* score_logits(std::span<const RowRef> rows);
  static constexpr int kScoreRows = 256;

 private:
  struct Row {
    int position = 0;
    const std::vector<int>* blocks = nullptr;
    const LoraAdapter* adapter = nullptr;
  };
  struct Tile {  // rows of one piece that attend together
    int first_row = 0;
    int count = 0;
  };
  struct Chunk {  // a piece on the GEMM path
    int first_row = 0;
    int count = 0;
    const LoraAdapter* adapter = nullptr;
  };
  struct Output {
    Linear linear;
    float* y;  // [rows, linear_rows]
  };

  struct Product {
    const WeightMatrix* w = nullptr;
    float* y = nullptr;  // [rows, w->rows]
  };

  void plan(std::span<const PassPiece> pieces);
  void layer(int index);
  void apply(int layer, const float* in, ActivationBlocks& activations, std::span<const Output> outputs);
  void apply_integer(int layer, const ActivationBlocks& activations, std::span<const Output> outputs);
  void apply_chunks(int layer, const float* in, std::span<const Output> outputs);
  void multiply_integers(const float* in, std::int64_t n, std::span<const Product> products);
  void multiply_floats(const float* in, std::int64_t n, const Product& product);
  void multiply_strips(const Product& p, std::int64_t begin, std::int64_t end);
  void adapt_chunk(int layer, const Chunk& c, const float* in, std::span<const Output> outputs);
  std::int64_t lora_groups(int layer, int input) const;
  void lora_down_tasks(int layer, int input, const ActivationBlocks& activations, std::int64_t groups, std::int64_t begin,
                       std::int64_t end);
  void integer_rows(int layer, const ActivationBlocks& activations, std::span<const Output> outputs, std::int64_t begin,
                    std::int64_t end, int worker);
  void add_adapters(int layer, Linear linear, std::int64_t first, std::int64_t last, float* y);
  PrefetchStream* lora_ahead(int layer, Linear linear, std::int64_t first, std::int64_t last, int worker);
  void norm_rows(const float* weight);
  void rotate_and_store(int layer);
  void attend(int layer);
  void gather_normed(std::span<const RowRef> rows);
  int row_of(RowRef ref) const { return first_row_[static_cast<std::size_t>(ref.piece)] + ref.index; }
  template <class Fn>
  void each_row(std::int64_t work_per_row, const Fn& fn);

  const std::shared_ptr<const TransformerWeights> weights_;
  const ModelConfig& config_;
  KvCache& cache_;
  WorkPool& pool_;

  std::vector<Row> rows_;  // the integer ones first
  std::vector<Tile> tiles_;
  std::vector<Chunk> chunks_;
  std::vector<int> first_row_;  // of each piece
  int integer_rows_ = 0;

  std::vector<float> x_, normed_, q_, k_, v_, attended_, projected_, gate_, up_, cos_sin_;
  std::vector<const LoraAdapter*> adapters_;  // those of the integer rows, each once
  std::vector<float> lora_hidden_;            // A x of the section's input: [integer rows][lora_stride_]
  std::int64_t lora_stride_ = 0;              // the step's largest stack rank; 0 = no adapter there
  std::vector<PrefetchStream> ahead_;         // one a core
  std::atomic<std::int64_t> downs_left_{0};  // pieces of lora_hidden_ that aren't written yet
  ActivationBlocks hidden_blocks_, attention_blocks_, ffn_blocks_, head_blocks_, many_blocks_;
  std::vector<AttentionState> attention_;  // one a core
  std::vector<float> head_in_, logits_;
};

}  // namespace sluice
