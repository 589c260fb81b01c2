// SPDX-License-Identifier: GPL-3.0-or-later
// Speed of the kernels on the shapes of the embedded model: hidden 576, feed-forward 1536, 30 layers, 49152 tokens.
// Not a test. Run with two idle cores; --benchmark_filter picks rows.
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "engine/model/kernels/random_blocks.h"

#include "model/kernels/dequant.h"

#include "model/kernels/attention.h"
#include "model/kernels/gemm.h"
#include "model/kernels/lora.h"
#include "model/kernels/matvec.h"
#include "model/kernels/target.h"
#include "model/kernels/vector_math.h"


namespace sluice {
namespace {

constexpr std::int64_t kHidden = 576, kKv = 192, kFeed = 1536, kLayers = 30, kVocabulary = 49152;

struct Matrix {
  BlockType type;
  std::int64_t rows;
  std::int64_t cols;
  std::vector<std::byte> bytes;
};

// All matrices of one token, in the order of the layers.
const std::vector<Matrix>& model_matrices(BlockType type) {
  static std::vector<Matrix> matrices[2];
  std::vector<Matrix>& all = matrices[type == BlockType::kQ4_1 ? 0 : 1];
  if (!all.empty()) return all;
  const std::pair<std::int64_t, std::int64_t> shapes[] = {{kHidden, kHidden}, {kKv, kHidden},   {kKv, kHidden},
                                                          {kHidden, kHidden}, {kFeed, kHidden}, {kFeed, kHidden},
                                                          {kHidden, kFeed}};
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    for (const auto& [rows, cols] : shapes) all.push_back({type, rows, cols, random_matrix(type, rows, cols, 1)});
  }
  all.push_back({BlockType::kQ8_0, kVocabulary, kHidden, random_matrix(BlockType::kQ8_0, kVocabulary, kHidden, 2)});
  return all;
}

// Threads that spin between matrices, as an OpenMP pool does.
class SpinTeam {
 public:
  explicit SpinTeam(int size) : size_(size) {
    for (int i = 1; i < size; ++i) threads_.emplace_back([this, i] { work(i); });
  }
  ~SpinTeam() {
    job_ = nullptr;
    turn_.fetch_add(1);
    for (std::thread& t : threads_) t.join();
  }
  // job(part, parts) on every thread of the team.
  template <class Job>
  void run(const Job& job) {
    call_ = [](const void* j, int part, int parts) { (*static_cast<const Job*>(j))(part, parts); };
    job_ = &job;
    done_.store(0);
    turn_.fetch_add(1);
    job(0, size_);
    while (done_.load() != size_ - 1) {
    }
  }

 private:
  void work(int part) {
    for (int seen = 0;;) {
      while (turn_.load() == seen) {
      }
      seen = turn_.load();
      if (job_ == nullptr) return;
      call_(job_, part, size_);
      done_.fetch_add(1);
    }
  }

  const int size_;
  void (*call_)(const void*, int, int) = nullptr;
  const void* job_ = nullptr;
  std::atomic<int> turn_{0};
  std::atomic<int> done_{0};
  std::vector<std::thread> threads_;
};

// Every matrix of a decode step. items = tokens.
void decode_matrices(benchmark::State& state, BlockType type) {
  const std::int64_t batch = state.range(0);
  const auto& matrices = model_matrices(type);
  const auto x = random_floats(batch * kFeed, 3);
  std::vector<float> out(static_cast<std::size_t>(batch * kVocabulary));
  SpinTeam team(static_cast<int>(state.range(1)));
  ActivationBlocks blocks;
  std::int64_t bytes = 0;
  for (auto _ : state) {
    for (const Matrix& m : matrices) {
      quantize_activations(x.data(), batch, m.cols, m.cols, blocks);
      const auto part = [&](int i, int n) {
        matvec_rows(m.type, m.bytes.data(), m.rows * i / n, m.rows * (i + 1) / n, blocks, out.data(), m.rows);
      };
      team.run(part);
      bytes += static_cast<std::int64_t>(m.bytes.size());
    }
  }
  state.SetItemsProcessed(state.iterations() * batch);
  state.SetBytesProcessed(bytes);
}
BENCHMARK_CAPTURE(decode_matrices, Q4_1, BlockType::kQ4_1)
    ->ArgNames({"batch", "threads"})
    ->ArgsProduct({{1, 2, 4, 8, 16}, {1, 2}})
    ->UseRealTime();
BENCHMARK_CAPTURE(decode_matrices, Q4_0, BlockType::kQ4_0)
    ->ArgNames({"batch", "threads"})
    ->ArgsProduct({{1, 8}, {2}})
    ->UseRealTime();

// One matrix that stays in the cache: what the arithmetic alone can do.
void matrix_in_cache(benchmark::State& state, BlockType type, std::int64_t rows, std::int64_t cols) {
  const std::int64_t batch = state.range(0);
  const auto matrix = random_matrix(type, rows, cols, 1);
  ActivationBlocks blocks;
  quantize_activations(random_floats(batch * cols, 2).data(), batch, cols, cols, blocks);
  std::vector<float> out(static_cast<std::size_t>(batch * rows));
  for (auto _ : state) matvec_rows(type, matrix.data(), 0, rows, blocks, out.data(), rows);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(matrix.size()));
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * static_cast<double>(state.iterations() * rows * cols * batch), benchmark::Counter::kIsRate);
}
#define SLUICE_IN_CACHE(type)                                                                                \
  BENCHMARK_CAPTURE(matrix_in_cache, type##_576x576, BlockType::k##type, 576, 576)->Arg(1)->Arg(4)->Arg(8)->Arg(64); \
  BENCHMARK_CAPTURE(matrix_in_cache, type##_192x1536, BlockType::k##type, 192, 1536)->Arg(1)->Arg(4)->Arg(8)->Arg(64)
SLUICE_IN_CACHE(Q4_0);
SLUICE_IN_CACHE(Q4_1);
SLUICE_IN_CACHE(Q5_0);
SLUICE_IN_CACHE(Q8_0);
SLUICE_IN_CACHE(F16);
BENCHMARK_CAPTURE(matrix_in_cache, Q4_K_192x1536, BlockType::kQ4_K, 192, 1536)->Arg(1)->Arg(8);
BENCHMARK_CAPTURE(matrix_in_cache, Q6_K_192x1536, BlockType::kQ6_K, 192, 1536)->Arg(1)->Arg(8);

void gemm(benchmark::State& state, BlockType type, std::int64_t rows, std::int64_t cols) {
  const std::int64_t batch = state.range(0);
  const auto matrix = random_matrix(type, rows, cols, 1);
  ActivationBlocks blocks;
  quantize_activations(random_floats(batch * cols, 2).data(), batch, cols, cols, blocks);
  std::vector<float> out(static_cast<std::size_t>(batch * rows));
  for (auto _ : state) gemm_rows(type, matrix.data(), 0, rows, blocks, out.data(), rows);
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * static_cast<double>(state.iterations() * rows * cols * batch), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(gemm, Q4_1_576x576, BlockType::kQ4_1, 576, 576)->Arg(8)->Arg(16)->Arg(32)->Arg(64)->Arg(512);
BENCHMARK_CAPTURE(gemm, Q4_0_576x1536, BlockType::kQ4_0, 576, 1536)->Arg(64)->Arg(512);
BENCHMARK_CAPTURE(gemm, Q5_0_576x576, BlockType::kQ5_0, 576, 576)->Arg(64)->Arg(512);
BENCHMARK_CAPTURE(gemm, Q8_0_576x576, BlockType::kQ8_0, 576, 576)->Arg(64)->Arg(512);
BENCHMARK_CAPTURE(gemm, Q6_K_576x1536, BlockType::kQ6_K, 576, 1536)->Arg(64)->Arg(512);

void quantize(benchmark::State& state) {
  const auto x = random_floats(state.range(0), 1);
  ActivationBlocks blocks;
  for (auto _ : state) quantize_activations(x.data(), 1, state.range(0), state.range(0), blocks);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(quantize)->Arg(kHidden)->Arg(kFeed);

void dequantise_panel(benchmark::State& state, BlockType type) {
  const std::int64_t rows = 64;
  const auto matrix = random_matrix(type, rows, kHidden, 1);
  std::vector<float> out(rows * kHidden);
  for (auto _ : state) dequant_panel(type, matrix.data(), kHidden, 0, rows, out.data());
  state.SetItemsProcessed(state.iterations() * rows * kHidden);
}
BENCHMARK_CAPTURE(dequantise_panel, Q4_1, BlockType::kQ4_1);
BENCHMARK_CAPTURE(dequantise_panel, Q8_0, BlockType::kQ8_0);
BENCHMARK_CAPTURE(dequantise_panel, F16, BlockType::kF16);

// One KV head of the embedded model, three query heads, after `positions` tokens, of so many rows at once. items = positions.
void attention(benchmark::State& state) {
  const std::int64_t n = state.range(0), rows = state.range(1), head_size = 64, heads = 3;
  const auto queries = random_floats(rows * heads * head_size, 1);
  const auto keys = random_floats(n * head_size, 2), values = random_floats(n * head_size, 3);
  std::vector<float> out(rows * heads * head_size);
  AttentionState attention;
  for (auto _ : state) {
    attention.begin(queries.data(), rows, heads * head_size, heads, head_size, 0.125f);
    for (std::int64_t p = 0; p < n; p += kAttentionBlock) {
      attention.add_block(keys.data() + p * head_size, values.data() + p * head_size, kAttentionBlock);
    }
    attention.finish(out.data(), heads * head_size);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * n * rows);
}
BENCHMARK(attention)->ArgsProduct({{64, 512, 2048, 8192}, {1, 2, 4, 8}});

// The adapter's part of one layer: rank 8 on all seven matrices.
void lora_layer(benchmark::State& state) {
  const std::int64_t rank = 8;
  const auto x = random_floats(kFeed, 1);
  std::vector<std::int16_t> a(rank * kFeed), b(rank * kFeed);
  lora_to_words(random_floats(rank * kFeed, 2).data(), rank * kFeed, a.data());
  lora_to_words(random_floats(rank * kFeed, 3).data(), rank * kFeed, b.data());
  std::vector<float> hidden(rank), y(kFeed);
  const std::pair<std::int64_t, std::int64_t> shapes[] = {{kHidden, kHidden}, {kKv, kHidden},   {kKv, kHidden},
                                                          {kHidden, kHidden}, {kFeed, kHidden}, {kFeed, kHidden},
                                                          {kHidden, kFeed}};
  for (auto _ : state) {
    for (const auto& [out, in] : shapes) {
      lora_down(x.data(), a.data(), in, rank, 0, hidden.data());
      lora_up(hidden.data(), b.data(), rank, 2.0f, 0, out, y.data());
    }
    benchmark::DoNotOptimize(y.data());
  }
}
BENCHMARK(lora_layer);

void norm(benchmark::State& state) {
  const auto x = random_floats(kHidden, 1), w = random_floats(kHidden, 2);
  std::vector<float> out(kHidden);
  for (auto _ : state) {
    rms_norm(x.data(), w.data(), kHidden, 1e-5f, out.data());
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * kHidden);
}
BENCHMARK(norm);

void gate(benchmark::State& state) {
  const auto g = random_floats(kFeed, 1), u = random_floats(kFeed, 2);
  std::vector<float> out(kFeed);
  for (auto _ : state) {
    silu_mul(g.data(), u.data(), kFeed, out.data());
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * kFeed);
}
BENCHMARK(gate);

void vocabulary_log_sum_exp(benchmark::State& state) {
  const auto x = random_floats(kVocabulary, 1);
  for (auto _ : state) benchmark::DoNotOptimize(log_sum_exp(x.data(), kVocabulary));
  state.SetItemsProcessed(state.iterations() * kVocabulary);
}
BENCHMARK(vocabulary_log_sum_exp);

}  // namespace
}  // namespace sluice

// SLUICE_BENCH_TARGET=AVX2 (see target.h) holds the run to one instruction set.
int main(int argc, char** argv) {
  const char* wanted = std::getenv("SLUICE_BENCH_TARGET");
  if (wanted != nullptr && !sluice::use_kernel_target(wanted)) {
    std::fprintf(stderr, "SLUICE_BENCH_TARGET=%s: not on this machine\n", wanted);
    return 2;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
