// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/item.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <atomic>
#include <thread>

#include "engine/model/golden.h"
#include "model/format/safetensors.h"
#include "model/frozen_linear_at.h"
#include "model/peft_folder.h"
#include "model/train_forward_at.h"
#include "model/weights.h"

namespace sluice {
namespace {

struct Packed {
  std::vector<TokenId> ids;
  std::vector<std::int32_t> positions, starts{0};
  std::vector<std::int64_t> rows, targets;
  std::vector<float> tau, w, lp, entropy;

  void add(const std::vector<TokenId>& sequence, float temperature) {
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      if (i + 1 < sequence.size()) {
        rows.push_back(starts.back() + static_cast<std::int64_t>(i));
        targets.push_back(sequence[i + 1]);
        tau.push_back(temperature);
      }
      ids.push_back(sequence[i]);
      positions.push_back(static_cast<std::int32_t>(i));
    }
    starts.push_back(static_cast<std::int32_t>(ids.size()));
  }
  PackedSequences view() const { return {ids, positions, starts}; }
};

at::Tensor longs(std::vector<std::int64_t>& v) { return at::from_blob(v.data(), {static_cast<std::int64_t>(v.size())}, at::kLong); }
at::Tensor floats(std::vector<float>& v) { return at::from_blob(v.data(), {static_cast<std::int64_t>(v.size())}, at::kFloat); }

Packed golden_rows() {
  Packed p;
  for (const auto& row : test::golden()["lora_training"]["rows"]) {
    p.add(row["ids"].get<std::vector<TokenId>>(), row["tau"].get<float>());
    for (const auto& x : row["w"]) p.w.push_back(x.get<float>());
    for (const auto& x : row["lp"]) p.lp.push_back(x.get<float>());
    for (const auto& x : row["entropy"]) p.entropy.push_back(x.get<float>());
  }
  return p;
}

struct Fixture {
  LoadedModel model = test::load("tiny-llama");
  std::shared_ptr<const TransformerWeights> weights = model_weights(*model.model);
  LoraTensors lora;

  Fixture() {
    at::set_num_threads(1);
    auto data = read_peft_folder(test::data_path("golden/tiny-lora"), weights->config);
    EXPECT_TRUE(data.ok()) << data.status().message();
    lora = lora_from_data(*data, weights->config);
  }
};

LogprobOutput logprobs(const Fixture& f, Packed& p, const LoraTensors* lora, bool checkpoint = false) {
  auto hidden = train_forward(*f.weights, lora, p.view(), {.checkpoint = checkpoint});
  EXPECT_TRUE(hidden.ok()) << hidden.status().message();
  auto out = chunked_logprob(*f.weights, hidden->index_select(0, longs(p.rows)), longs(p.targets), floats(p.tau));
  EXPECT_TRUE(out.ok()) << out.status().message();
  return *out;
}

// The golden loss: sum of w lp + 0.1 sum of entropy; fills flat_grad.
double golden_backward(Fixture& f, Packed& p, bool checkpoint) {
  f.lora.flat_grad.zero_();
  const LogprobOutput out = logprobs(f, p, &f.lora, checkpoint);
  const at::Tensor loss = (out.lp * floats(p.w)).sum() + 0.1 * out.entropy.sum();
  loss.backward();
  return loss.item<double>();
}

TEST(TrainForward, LogprobsAndEntropyEqualPeft) {
  Fixture f;
  Packed p = golden_rows();
  const LogprobOutput out = logprobs(f, p, &f.lora);
  for (std::size_t i = 0; i < p.lp.size(); ++i) {
    EXPECT_NEAR(out.lp[static_cast<std::int64_t>(i)].item<float>(), p.lp[i], 2e-5f) << i;
    EXPECT_NEAR(out.entropy[static_cast<std::int64_t>(i)].item<float>(), p.entropy[i], 2e-5f) << i;
  }
}

class Gradients : public testing::TestWithParam<bool> {};

TEST_P(Gradients, EqualPeft) {
  Fixture f;
  Packed p = golden_rows();
  const double loss = golden_backward(f, p, GetParam());
  EXPECT_NEAR(loss, test::golden()["lora_training"]["loss"].get<double>(), 1e-3);
  auto file = SafetensorsFile::open(test::data_path("golden/tiny-lora-grads.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ((*file)->tensors().size(), f.lora.modules.size() * 2);
  for (const LoraModule& m : f.lora.modules) {
    for (const auto& [tensor, half] : {std::pair(m.a, "A"), std::pair(m.b, "B")}) {
      const std::string name = "base_model.model." + m.name + ".lora_" + half + ".weight";
      const SafeTensor* want = (*file)->find(name);
      ASSERT_NE(want, nullptr) << name;
      ASSERT_TRUE(tensor.grad().defined());
      const at::Tensor got = tensor.grad().contiguous();
      ASSERT_EQ(static_cast<std::size_t>(got.numel()) * sizeof(float), want->bytes.size());
      std::vector<float> values(static_cast<std::size_t>(got.numel()));
      std::memcpy(values.data(), want->bytes.data(), want->bytes.size());
      float largest = 0;
      for (const float x : values) largest = std::max(largest, std::fabs(x));
      EXPECT_GT(largest, 0) << name;
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(got.const_data_ptr<float>()[i], values[i], 1e-4f * std::fabs(values[i]) + 1e-5f * largest + 1e-6f) << name << " " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpointing, Gradients, testing::Bool());

TEST(TrainForward, GradientsLandInTheFlatBuffer) {
  Fixture f;
  Packed p = golden_rows();
  golden_backward(f, p, false);
  const at::Tensor once = f.lora.flat_grad.clone();
  EXPECT_GT(once.abs().max().item<float>(), 0);
  EXPECT_TRUE(f.lora.modules[3].a.grad().is_alias_of(f.lora.flat_grad));
  golden_backward(f, p, true);
  EXPECT_LT((f.lora.flat_grad - once).abs().max().item<float>(), 1e-5f * once.abs().max().item<float>());
  // Two micro-batches add up to one.
  f.lora.flat_grad.zero_();
  std::size_t from = 0;
  for (std::size_t s = 0; s + 1 < p.starts.size(); ++s) {
    Packed one;
    one.add({p.ids.begin() + p.starts[s], p.ids.begin() + p.starts[s + 1]}, s == 0 ? 1.0f : 0.7f);
    one.w.assign(p.w.begin() + static_cast<std::ptrdiff_t>(from), p.w.begin() + static_cast<std::ptrdiff_t>(from + one.rows.size()));
    from += one.rows.size();
    const LogprobOutput out = logprobs(f, one, &f.lora);
    ((out.lp * floats(one.w)).sum() + 0.1 * out.entropy.sum()).backward();
  }
  EXPECT_LT((f.lora.flat_grad - once).abs().max().item<float>(), 1e-5f * once.abs().max().item<float>());
}

TEST(TrainForward, TwoPassesAgreeBitForBit) {
  Fixture f;
  Packed p = golden_rows();
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(logprobs(f, p, &f.lora).lp.equal(logprobs(f, p, &f.lora).lp));
}

TEST(TrainForward, PackingIsBlockDiagonal) {
  Fixture f;
  const at::NoGradGuard no_grad;
  const auto a = test::golden()["lora"][1]["ids"].get<std::vector<TokenId>>();
  const auto b = test::golden()["lora"][2]["ids"].get<std::vector<TokenId>>();
  Packed alone, both;
  alone.add(b, 1.0f);
  both.add(a, 1.0f);
  both.add(b, 1.0f);
  const at::Tensor one = logprobs(f, alone, &f.lora).lp, two = logprobs(f, both, &f.lora).lp;
  EXPECT_LT((two.narrow(0, static_cast<std::int64_t>(a.size()) - 1, one.size(0)) - one).abs().max().item<float>(), 1e-5f);
}

// Sequences that begin alike: computed once, with the log-probabilities and gradients of each sequence by itself.
TEST(TrainForward, SharedPrefixChangesNothing) {
  for (const bool checkpoint : {false, true}) {
    Fixture f;
    auto a = test::golden()["lora"][2]["ids"].get<std::vector<TokenId>>();
    auto b = a, c = a;
    b.resize(60);
    b[41] = 9;
    c.resize(43);
    c[40] = 5;
    std::vector<float> lp;
    for (const auto& one : {a, b, c}) {
      Packed alone;
      alone.add(one, 0.8f);
      const at::Tensor out = logprobs(f, alone, &f.lora).lp;
      out.sum().backward();
      lp.insert(lp.end(), out.const_data_ptr<float>(), out.const_data_ptr<float>() + out.numel());
    }
    const at::Tensor want = f.lora.flat_grad.clone();
    f.lora.flat_grad.zero_();
    Packed all;
    for (const auto& one : {a, b, c}) all.add(one, 0.8f);
    const at::Tensor out = logprobs(f, all, &f.lora, checkpoint).lp;
    out.sum().backward();
    for (std::size_t i = 0; i < lp.size(); ++i) EXPECT_NEAR(out.const_data_ptr<float>()[i], lp[i], 2e-5f) << i;
    EXPECT_LT((f.lora.flat_grad - want).abs().max().item<float>(), 2e-5f * want.abs().max().item<float>());
  }
}

TEST(TrainForward, AdapterOffIsTheBase) {
  Fixture f;
  const at::NoGradGuard no_grad;
  const auto& item = test::golden()["models"]["tiny-llama"][1];
  Packed p;
  p.add(item["ids"].get<std::vector<TokenId>>(), 1.0f);
  const at::Tensor lp = logprobs(f, p, nullptr).lp;
  const auto want = item["lp"].get<std::vector<float>>();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(lp[static_cast<std::int64_t>(i)].item<float>(), want[i], 2e-5f);
  auto fresh = init_lora(f.weights->config, {}, 1);
  ASSERT_TRUE(fresh.ok());
  EXPECT_TRUE(logprobs(f, p, &*fresh).lp.equal(lp)) << "B is zero";
}

TEST(TrainForward, FreshAdapterMovesOnlyBFirst) {
  Fixture f;
  auto fresh = init_lora(f.weights->config, {}, 7);
  ASSERT_TRUE(fresh.ok());
  f.lora = *fresh;
  Packed p = golden_rows();
  golden_backward(f, p, true);
  for (const LoraModule& m : f.lora.modules) {
    EXPECT_EQ(m.a.grad().abs().max().item<float>(), 0) << m.name;
    EXPECT_GT(m.b.grad().abs().max().item<float>(), 0) << m.name;
  }
}

TEST(TrainForward, InitialisationDependsOnTheSeedOnly) {
  Fixture f;
  LoraConfig config;
  config.rank = 8;
  auto one = init_lora(f.weights->config, config, 42), two = init_lora(f.weights->config, config, 42), other = init_lora(f.weights->config, config, 43);
  ASSERT_TRUE(one.ok() && two.ok() && other.ok());
  EXPECT_TRUE(one->flat.equal(two->flat));
  EXPECT_FALSE(one->flat.equal(other->flat));
  EXPECT_EQ(one->parameters(), 2 * 8 * ((64 + 64) + (64 + 32) * 2 + (64 + 64) + (64 + 128) * 3));
  for (const LoraModule& m : one->modules) {
    EXPECT_EQ(m.b.abs().max().item<float>(), 0);
    const float bound = 1.0f / std::sqrt(static_cast<float>(m.a.size(1)));
    EXPECT_LE(m.a.abs().max().item<float>(), bound);
    EXPECT_GT(m.a.abs().max().item<float>(), 0.8f * bound);
    EXPECT_EQ(m.scale, 4.0f);  // alpha 32 / rank 8
  }
  config.gaussian = true;
  auto gaussian = init_lora(f.weights->config, config, 1);
  ASSERT_TRUE(gaussian.ok());
  EXPECT_NEAR(gaussian->find(0, Linear::kGate)->a.std().item<float>(), 1.0f / 8, 0.02f);
  EXPECT_FALSE(init_lora(f.weights->config, {.rank = 0}, 1).ok());
  EXPECT_FALSE(init_lora(f.weights->config, {.layers = {2}}, 1).ok());
  EXPECT_FALSE(init_lora(f.weights->config, {.targets = {}}, 1).ok());
}

// Central differences of the tiled log-probability against its closed-form gradient, entropy included.
TEST(ChunkedLogprob, GradientEqualsFiniteDifferences) {
  Fixture f;
  const std::int64_t hidden = f.weights->config.hidden;
  at::Tensor h = at::zeros({3, hidden});
  for (std::int64_t i = 0; i < h.numel(); ++i) h.mutable_data_ptr<float>()[i] = std::sin(static_cast<float>(i) * 1.7f);
  std::vector<std::int64_t> targets{3, 319, 77};
  std::vector<float> tau{1.0f, 0.6f, 1.5f};
  const auto value = [&](const at::Tensor& x) {
    auto out = chunked_logprob(*f.weights, x, longs(targets), floats(tau));
    EXPECT_TRUE(out.ok());
    return (out->lp * at::arange(1, 4, at::kFloat)).sum() + out->entropy.sum() * 0.5;
  };
  h.set_requires_grad(true);
  value(h).backward();
  const at::Tensor grad = h.grad().clone();
  const at::NoGradGuard no_grad;
  for (const std::int64_t i : {std::int64_t{0}, std::int64_t{63}, std::int64_t{70}, std::int64_t{150}}) {
    constexpr float kStep = 1e-2f;
    at::Tensor up = h.detach().clone(), down = h.detach().clone();
    up.mutable_data_ptr<float>()[i] += kStep;
    down.mutable_data_ptr<float>()[i] -= kStep;
    const double slope = (value(up).item<double>() - value(down).item<double>()) / (2 * kStep);
    EXPECT_NEAR(grad.const_data_ptr<float>()[i], slope, 2e-3 * (1 + std::fabs(slope))) << i;
  }
}

TEST(ChunkedLogprob, EqualsTheFullForm) {
  Fixture f;
  const WeightMatrix& head = f.weights->head;
  at::Tensor h = at::zeros({300, head.cols});  // more rows than a tile
  for (std::int64_t i = 0; i < h.numel(); ++i) h.mutable_data_ptr<float>()[i] = std::sin(static_cast<float>(i) * 0.37f);
  std::vector<std::int64_t> targets(300);
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<std::int64_t>(i * 7 % 320);
  std::vector<float> tau(300, 0.8f);
  auto out = chunked_logprob(*f.weights, h, longs(targets), floats(tau));
  ASSERT_TRUE(out.ok());
  const at::Tensor z = at::mm(h, dequantised_panel(head, 0, head.rows).t()).to(at::kDouble) / 0.8;
  const at::Tensor logp = at::log_softmax(z, 1);
  const at::Tensor want = logp.gather(1, longs(targets).unsqueeze(1)).squeeze(1);
  EXPECT_LT((out->lp.to(at::kDouble) - want).abs().max().item<double>(), 5e-6);
  EXPECT_LT((out->entropy.to(at::kDouble) + (logp.exp() * logp).sum(1)).abs().max().item<double>(), 5e-6);
  EXPECT_TRUE(out->top1.equal(z.argmax(1)));
}

// Without -fopenmp at::parallel_for runs serially and says nothing.
TEST(Torch, ParallelForUsesMoreThanOneThread) {
  at::set_num_threads(2);
  std::atomic<int> other{0};
  const auto here = std::this_thread::get_id();
  at::parallel_for(0, 2, 1, [&](std::int64_t, std::int64_t) {
    if (std::this_thread::get_id() != here) ++other;
  });
  EXPECT_EQ(other, 1);
  at::set_num_threads(1);
}

TEST(TrainForward, RefusesBadInput) {
  Fixture f;
  const std::vector<TokenId> ids{1, 2, 3}, outside{1, 2, 320};
  const std::vector<std::int32_t> positions{0, 1, 2}, starts{0, 3}, gap{0, 2}, empty{0, 0, 3};
  EXPECT_TRUE(train_forward(*f.weights, nullptr, {ids, positions, starts}).ok());
  EXPECT_FALSE(train_forward(*f.weights, nullptr, {outside, positions, starts}).ok());
  EXPECT_FALSE(train_forward(*f.weights, nullptr, {ids, positions, gap}).ok());
  EXPECT_FALSE(train_forward(*f.weights, nullptr, {ids, positions, empty}).ok());
  EXPECT_FALSE(train_forward(*f.weights, nullptr, {ids, starts, starts}).ok());
  EXPECT_FALSE(train_forward(*f.weights, nullptr, {{}, {}, {}}).ok());
  const at::Tensor h = at::zeros({1, 64});
  std::vector<std::int64_t> target{320};
  std::vector<float> tau{1.0f}, zero{0.0f};
  EXPECT_FALSE(chunked_logprob(*f.weights, h, longs(target), floats(tau)).ok());
  target[0] = 5;
  EXPECT_FALSE(chunked_logprob(*f.weights, h, longs(target), floats(zero)).ok());
  EXPECT_TRUE(chunked_logprob(*f.weights, h, longs(target), floats(tau)).ok());
}

}  // namespace
}  // namespace sluice
