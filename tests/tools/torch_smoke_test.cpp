// SPDX-License-Identifier: GPL-3.0-or-later
// libtorch from the wheel links, computes, and runs loops on more than one thread: at::parallel_for compiled without
// -fopenmp would run serially and say nothing.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

TEST(TorchSmoke, MatmulIsRight) {
  const at::Tensor product = at::matmul(at::ones({3, 40}), at::ones({40, 5}));
  ASSERT_EQ(product.sizes(), (std::vector<int64_t>{3, 5}));
  for (int64_t i = 0; i < product.numel(); ++i) EXPECT_EQ(product.const_data_ptr<float>()[i], 40.0f);
}

// Both chunks wait for each other, so that one thread alone cannot run them one after the other unnoticed; the spin has
// an end, after which the test fails instead of hanging.
TEST(TorchSmoke, ParallelForUsesMoreThanOneThread) {
  at::set_num_threads(2);
  std::atomic<int> started{0};
  std::vector<std::thread::id> ids(2);
  at::parallel_for(0, 2, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ids[static_cast<size_t>(i)] = std::this_thread::get_id();
    }
    started.fetch_add(1);
    for (long spins = 0; started.load() < 2 && spins < 100'000'000; ++spins) std::this_thread::yield();
  });
  EXPECT_EQ(started.load(), 2);
  EXPECT_NE(ids[0], ids[1]);
}

TEST(TorchSmoke, OneOpenMpLibraryIsLoaded) {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> libraries;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libgomp") != std::string::npos || line.find("libiomp") != std::string::npos) {
      libraries.insert(line.substr(line.find('/')));
    }
  }
  EXPECT_EQ(libraries.size(), 1u) << *libraries.begin() << " and " << *libraries.rbegin();
  EXPECT_NE(libraries.begin()->find("/torch/lib/"), std::string::npos) << *libraries.begin();
}

}  // namespace
