// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "model/functions_at.h"
#include "model/kernels/dequant.h"
#include "model/train_forward_at.h"

namespace sluice {
namespace {

Status check(const ModelConfig& config, const PackedSequences& batch) {
  const std::size_t n = batch.ids.size();
  if (n == 0) return invalid_argument("a training forward needs at least one token");
  if (batch.positions.size() != n) {
    return invalid_argument("positions has " + std::to_string(batch.positions.size()) + " entries for " + std::to_string(n) + " ids");
  }
  const auto& starts = batch.seq_start;
  if (starts.size() < 2 || starts.front() != 0 || starts.back() != static_cast<std::int32_t>(n)) {
    return invalid_argument("seq_start must run from 0 to the number of ids, " + std::to_string(n));
  }
  for (std::size_t s = 0; s + 1 < starts.size(); ++s) {
    if (starts[s + 1] <= starts[s]) return invalid_argument("sequence " + std::to_string(s) + " of seq_start is empty");
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (batch.ids[i] < 0 || batch.ids[i] >= config.vocab) {
      return invalid_argument("id " + std::to_string(batch.ids[i]) + " is outside the vocabulary of " + std::to_string(config.vocab));
    }
    if (batch.positions[i] < 0 || batch.positions[i] >= config.context) {
      return invalid_argument("position " + std::to_string(batch.positions[i]) + " is outside the context of " +
                              std::to_string(config.context));
    }
  }
  return {};
}

at::Tensor embed(const TransformerWeights& w, std::span<const TokenId> ids) {
  const std::int64_t hidden = w.config.hidden;
  at::Tensor x = at::empty({static_cast<std::int64_t>(ids.size()), hidden}, at::kFloat);
  float* out = x.mutable_data_ptr<float>();
  const auto stride = static_cast<std::size_t>(row_bytes(w.embedding.type, hidden));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    dequantize_row(w.embedding.type, w.embedding.data + static_cast<std::size_t>(ids[i]) * stride, hidden,
                   out + static_cast<std::int64_t>(i) * hidden);
  }
  return x;
}

// [N, head_dim]: cosines, then sines, of position * inverse frequency (f32, as in serving).
at::Tensor angles(const TransformerWeights& w, std::span<const std::int32_t> positions) {
  const std::int64_t head_dim = w.config.head_dim, half = head_dim / 2;
  at::Tensor table = at::empty({static_cast<std::int64_t>(positions.size()), head_dim}, at::kFloat);
  float* out = table.mutable_data_ptr<float>();
  for (std::size_t i = 0; i < positions.size(); ++i, out += head_dim) {
    for (std::int64_t j = 0; j < half; ++j) {
      const float angle = static_cast<float>(positions[i]) * w.rope.inverse[static_cast<std::size_t>(j)];
      out[j] = std::cos(angle) * w.rope.magnitude;
      out[half + j] = std::sin(angle) * w.rope.magnitude;
    }
  }
  return table;
}

// What every block of a pass shares. Held by the graph under checkpointing, so it owns what it refers to, except the
// weights, which outlive every pass.
struct Pass {
  const TransformerWeights& weights;
  LoraTensors lora;  // handles to the caller's tensors
  at::Tensor cos_sin;
  AttentionPlan plan;

  LinearPair pair(int layer, Linear linear) const {
    return {&weights.layers[static_cast<std::size_t>(layer)].linear(linear), lora.find(layer, linear)};
  }
};

at::Tensor head_norm(const at::Tensor& x, const float* weight, const ModelConfig& c) {
  if (weight == nullptr) return x;
  return rms_norm_rows(x.view({-1, c.head_dim}), weight, static_cast<double>(c.rms_eps)).view(x.sizes());
}

at::Tensor block(const Pass& pass, int layer, const at::Tensor& x) {
  const ModelConfig& c = pass.weights.config;
  const LayerWeights& w = pass.weights.layers[static_cast<std::size_t>(layer)];
  const double eps = static_cast<double>(c.rms_eps);
  const std::vector<at::Tensor> qkv =
      lora_linears(std::array{pass.pair(layer, Linear::kQ), pass.pair(layer, Linear::kK), pass.pair(layer, Linear::kV)},
                   rms_norm_rows(x, w.attention_norm, eps));
  const at::Tensor q = rotate(head_norm(qkv[0], w.q_norm, c), pass.cos_sin);
  const at::Tensor k = rotate(head_norm(qkv[1], w.k_norm, c), pass.cos_sin);
  const at::Tensor attended = packed_attention(q, k, qkv[2], pass.plan, c.heads, c.kv_heads);
  const at::Tensor middle = at::add(x, lora_linears(std::array{pass.pair(layer, Linear::kO)}, attended)[0]);
  const std::vector<at::Tensor> mlp =
      lora_linears(std::array{pass.pair(layer, Linear::kGate), pass.pair(layer, Linear::kUp)}, rms_norm_rows(middle, w.ffn_norm, eps));
  return at::add(middle, lora_linears(std::array{pass.pair(layer, Linear::kDown)}, silu_gate(mlp[0], mlp[1]))[0]);
}

// The batch with what begins every sequence alike (a system prompt, the prompt of a group) laid once, before the rests.
// Every row still sees what it saw; gradients of the common rows add up by themselves.
struct Folded {
  std::vector<TokenId> ids;
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> starts{0};
  std::int64_t prefix = 0;
  std::vector<std::int64_t> rows;  // of each original row; empty when nothing was folded
};

// Tokens that begin every sequence at the same positions, at most one less than the shortest.
std::int64_t common_prefix(const PackedSequences& batch) {
  const std::size_t sequences = batch.seq_start.size() - 1;
  std::int64_t common = std::numeric_limits<std::int32_t>::max();
  for (std::size_t s = 0; s < sequences; ++s) {
    const std::int32_t start = batch.seq_start[s];
    common = std::min<std::int64_t>(common, batch.seq_start[s + 1] - start - 1);
    std::int64_t same = 0;
    while (same < common && batch.ids[static_cast<std::size_t>(start + same)] == batch.ids[static_cast<std::size_t>(same)] &&
           batch.positions[static_cast<std::size_t>(start + same)] == batch.positions[static_cast<std::size_t>(same)]) {
      ++same;
    }
    common = same;
  }
  return common;
}

Folded fold(const PackedSequences& batch) {
  constexpr std::int64_t kWorthIt = 8;  // rows; fewer do not pay for the masks
  Folded out;
  const std::size_t sequences = batch.seq_start.size() - 1;
  const std::int64_t common = sequences > 1 ? common_prefix(batch) : 0;
  out.prefix = common >= kWorthIt ? common : 0;
  if (out.prefix == 0) {
    out.ids.assign(batch.ids.begin(), batch.ids.end());
    out.positions.assign(batch.positions.begin(), batch.positions.end());
    out.starts.assign(batch.seq_start.begin(), batch.seq_start.end());
    return out;
  }
  const auto append = [&](std::int64_t begin, std::int64_t end) {
    out.ids.insert(out.ids.end(), batch.ids.begin() + begin, batch.ids.begin() + end);
    out.positions.insert(out.positions.end(), batch.positions.begin() + begin, batch.positions.begin() + end);
    out.starts.push_back(static_cast<std::int64_t>(out.ids.size()));
  };
  append(0, out.prefix);
  for (std::size_t s = 0; s < sequences; ++s) {
    for (std::int64_t i = 0; i < out.prefix; ++i) out.rows.push_back(i);
    const std::int64_t begin = batch.seq_start[s] + out.prefix, end = batch.seq_start[s + 1];
    for (std::int64_t i = begin; i < end; ++i) out.rows.push_back(out.starts.back() + i - begin);
    append(begin, end);
  }
  return out;
}

at::Tensor run_blocks(const std::shared_ptr<const Pass>& pass, at::Tensor x, bool checkpoint) {
  for (int layer = 0; layer < pass->weights.config.layers; ++layer) {
    if (!checkpoint) {
      x = block(*pass, layer, x);
      continue;
    }
    std::vector<at::Tensor> leaves;
    for (const Linear linear : kAllLinears) {
      if (const LoraModule* m = pass->lora.find(layer, linear)) leaves.insert(leaves.end(), {m->a, m->b});
    }
    x = checkpointed([pass, layer](const at::Tensor& in) { return block(*pass, layer, in); }, x, leaves);
  }
  return x;
}

}  // namespace

Result<at::Tensor> train_forward(const TransformerWeights& weights, const LoraTensors* lora, const PackedSequences& batch,
                                 const TrainForwardOptions& options) {
  SLUICE_RETURN_IF_ERROR(check(weights.config, batch));
  const Folded folded = fold(batch);
  const auto pass = std::make_shared<const Pass>(Pass{weights, lora == nullptr ? LoraTensors() : *lora,
                                                      angles(weights, folded.positions),
                                                      AttentionPlan(folded.starts, folded.prefix)});
  const bool checkpoint = options.checkpoint && at::GradMode::is_enabled() && lora != nullptr;
  const at::Tensor x = run_blocks(pass, embed(weights, folded.ids), checkpoint);
  at::Tensor hidden = rms_norm_rows(x, weights.final_norm, static_cast<double>(weights.config.rms_eps));
  if (folded.rows.empty()) return hidden;
  at::Tensor index = at::empty({static_cast<std::int64_t>(folded.rows.size())}, at::kLong);
  std::copy(folded.rows.begin(), folded.rows.end(), index.mutable_data_ptr<std::int64_t>());
  return at::index_select(hidden, 0, index);
}

std::int64_t activation_bytes(const ModelConfig& c, const LoraConfig& lora, std::int64_t tokens, bool checkpoint) {
  // Per block: two norm inputs and outputs, q and k before and after rotation, v, attention output, gate, up and their
  // product, log-sums, and the low-rank products.
  const std::int64_t low = lora.rank * static_cast<std::int64_t>(lora.targets.size());
  const std::int64_t block_floats = 4 * c.hidden + 2 * c.q_size() + 2 * c.kv_size() + 3 * c.ffn + c.heads + low;
  const std::int64_t per_token = checkpoint ? static_cast<std::int64_t>(c.layers) * c.hidden + block_floats
                                            : static_cast<std::int64_t>(c.layers) * block_floats;
  return tokens * per_token * static_cast<std::int64_t>(sizeof(float));
}

Result<LogprobOutput> chunked_logprob(const TransformerWeights& weights, const at::Tensor& hidden_rows,
                                      const at::Tensor& targets, const at::Tensor& tau) {
  const std::int64_t m = hidden_rows.dim() == 2 ? hidden_rows.size(0) : -1;
  if (m < 1 || hidden_rows.size(1) != weights.config.hidden || hidden_rows.scalar_type() != at::kFloat) {
    return invalid_argument("log-probabilities need hidden rows of [M, " + std::to_string(weights.config.hidden) + "] in f32");
  }
  if (targets.dim() != 1 || targets.size(0) != m || targets.scalar_type() != at::kLong || tau.dim() != 1 || tau.size(0) != m ||
      tau.scalar_type() != at::kFloat) {
    return invalid_argument("log-probabilities of " + std::to_string(m) + " rows need as many int64 targets and f32 temperatures");
  }
  const at::Tensor ids = targets.contiguous(), temperatures = tau.contiguous();
  for (std::int64_t i = 0; i < m; ++i) {
    const std::int64_t id = ids.const_data_ptr<std::int64_t>()[i];
    if (id < 0 || id >= weights.config.vocab) {
      return invalid_argument("target " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(weights.config.vocab));
    }
    const float t = temperatures.const_data_ptr<float>()[i];
    if (!(t > 0) || !std::isfinite(t)) return invalid_argument("temperature " + std::to_string(t) + " is not above 0");
  }
  LogprobTensors out = logprob_rows(weights.head, hidden_rows.contiguous(), ids, temperatures);
  return LogprobOutput{out.lp, out.entropy, out.top1};
}

}  // namespace sluice
