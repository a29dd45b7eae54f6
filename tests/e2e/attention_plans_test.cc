// cuDNN recognizes our description of attention and has plans for models'
// sizes, on an A100 and an H100. It plans without a GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "runtime/cuda/attention_graph.h"
#include "runtime/cuda/dnn.h"
#include "runtime/cuda/dnn_plans.h"
#include "tests/e2e/known_gpus.h"

namespace partita::e2e {
namespace {

using device::AttentionDesc;

// cuDNN compiles its kernels for attention, and loads them by the driver.
constexpr char kDriver[] = "tests/e2e/libplanning_driver.so";

struct Case {
  const char* name;
  int64_t batch, heads, groups, queries, keys, size;
  bool causal;
  int64_t causal_offset;
  bool has_lse;
};

// Reads q, k and v from one buffer by tokens, as the compiler's kernels do.
AttentionDesc Describe(const Case& which, base::DType dtype) {
  AttentionDesc desc;
  desc.dtype = dtype;
  desc.batch = which.batch;
  desc.heads = which.heads;
  desc.groups = which.groups;
  desc.queries = which.queries;
  desc.keys = which.keys;
  desc.size = desc.value_size = which.size;
  desc.scale = 0.125;
  desc.causal = which.causal;
  desc.causal_offset = which.causal_offset;
  const int64_t token = (which.heads + 2 * which.groups) * which.size;
  const std::array<int64_t, 3> strides = {which.keys * token, which.size,
                                          token};
  desc.q = {0, 0, strides};
  desc.k = {0, which.heads * which.size, strides};
  desc.v = {0, (which.heads + which.groups) * which.size, strides};
  const int64_t row = which.heads * which.size;
  desc.out = {1, 0, {which.queries * row, which.size, row}};
  desc.lse = which.has_lse ? 2 : -1;
  return desc;
}

class AttentionPlansTest : public testing::TestWithParam<Case> {};

TEST_P(AttentionPlansTest, EveryGpuHasSome) {
  // Before cuDNN, which then finds it by its name.
  ASSERT_NE(dlopen(kDriver, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  const auto dnn = cuda::Dnn::OpenWithoutGpu("");
  if (!dnn.ok())
    GTEST_SKIP() << "no cuDNN: plans of attention are not looked for";
  if ((*dnn)->Version() < kFirstVersionThatPlans)
    GTEST_SKIP() << "cuDNN before 9.11 does not plan without a GPU: plans of "
                    "attention are not looked for";
  for (const Gpu& card : {kA100, kH100}) {
    const auto gpu = cuda::DescribeGpu(**dnn, JsonOf(card));
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    for (const base::DType dtype : {base::DType::kF16, base::DType::kBF16}) {
      SCOPED_TRACE(std::string(card.name) + " " + base::NameOf(dtype));
      const auto graph = cuda::AttentionGraph::Make(
          **dnn, Describe(GetParam(), dtype), gpu->get());
      ASSERT_TRUE(graph.ok()) << graph.status();
      const auto plans = (*graph)->Plans();
      ASSERT_TRUE(plans.ok()) << plans.status();
      int64_t most = 0;
      for (const cuda::DnnPlan& plan : *plans)
        most = std::max(most, plan.workspace_bytes);
      std::printf(
          "%s, %s, %s: %zu plans, first %s; workspace at most %lld "
          "bytes\n",
          GetParam().name, card.name, base::NameOf(dtype), plans->size(),
          plans->front().name.c_str(), static_cast<long long>(most));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, AttentionPlansTest,
    testing::Values(
        Case{"gpt2_medium", 8, 16, 16, 1024, 1024, 64, true, 0, false},
        // Not multiples of the tiles of 64 positions.
        Case{"vit_l_16", 32, 16, 16, 197, 197, 64, false, 0, true},
        Case{"llama", 2, 32, 8, 2048, 2048, 128, true, 0, true},
        // Sixteen tokens behind 512 that are cached.
        Case{"llama_cached", 2, 32, 8, 16, 528, 128, true, 512, false}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace partita::e2e
