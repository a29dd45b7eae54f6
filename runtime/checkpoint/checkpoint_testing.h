// Helpers for tests of checkpoints: tensors whose content depends on the step.
#ifndef PARTITA_RUNTIME_CHECKPOINT_CHECKPOINT_TESTING_H_
#define PARTITA_RUNTIME_CHECKPOINT_CHECKPOINT_TESTING_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/dtype.h"
#include "runtime/base/random_fill.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/entry.h"

namespace partita::checkpoint {

struct TestTensor {
  const char* name;
  base::DType dtype;
  std::vector<int64_t> shape;
  Group group;
};

inline std::vector<TestTensor> TestTensors() {
  using base::DType;
  return {{"embed.weight", DType::kF32, {7, 33}, Group::kModel},
          {"flag", DType::kI1, {3}, Group::kModel},
          {"h.0.weight", DType::kBF16, {16, 9}, Group::kModel},
          {"scale", DType::kF32, {}, Group::kModel},
          {"empty", DType::kF32, {0, 4}, Group::kModel},
          {"adamw.m/embed.weight", DType::kF32, {7, 33}, Group::kOptimizer},
          {"adamw.v/embed.weight", DType::kF64, {7, 33}, Group::kOptimizer},
          {"skipped", DType::kI64, {1}, Group::kOptimizer}};
}

inline base::TensorSpec SpecOf(const TestTensor& tensor) {
  return {tensor.name, tensor.dtype, tensor.shape,
          *base::ByteCount(tensor.dtype, tensor.shape)};
}

// The bytes of a tensor after a step; different for every tensor and step.
inline std::string Content(const base::TensorSpec& spec, int64_t step) {
  uint64_t seed = static_cast<uint64_t>(step);
  for (const char c : spec.name)
    seed = base::RandomWord(seed, static_cast<unsigned char>(c));
  std::string bytes;
  for (int64_t i = 0; i < spec.bytes; ++i)
    bytes.push_back(static_cast<char>(
        base::RandomWord(seed, static_cast<uint64_t>(i)) >> 32));
  return bytes;
}

// All tensors after `step`, whole, with `scale` times as many rows.
inline std::vector<Entry> TestEntries(int64_t step, int64_t scale = 1) {
  std::vector<Entry> entries;
  for (TestTensor& tensor : TestTensors()) {
    if (tensor.shape.size() == 2) tensor.shape[0] *= scale;
    const base::TensorSpec spec = SpecOf(tensor);
    entries.push_back(WholeEntry(spec, tensor.group, [spec, step](char* whole) {
      const std::string bytes = Content(spec, step);
      std::memcpy(whole, bytes.data(), bytes.size());
      return absl::OkStatus();
    }));
  }
  return entries;
}

inline State TestState(int64_t step) {
  State state;
  state.step = step;
  state.seed = 7;
  state.data = "{\"position\":" + std::to_string(step) + "}";
  state.extra["loss_scale"] = "1024";
  return state;
}

// Name of a difference between a checkpoint and the expected content of its
// step; empty if there is none.
inline std::string Difference(const Checkpoint& checkpoint) {
  const State wanted = TestState(checkpoint.state().step);
  if (checkpoint.state().data != wanted.data) return "state";
  if (checkpoint.state().extra != wanted.extra) return "extra";
  if (checkpoint.tensors().size() != TestTensors().size()) return "count";
  for (const base::TensorSpec& spec : checkpoint.tensors()) {
    const auto tensor = checkpoint.Find(spec.name);
    if (!tensor.ok()) return spec.name;
    const std::string bytes = Content(spec, checkpoint.state().step);
    if (std::memcmp(tensor->data, bytes.data(), bytes.size()) != 0)
      return spec.name;
  }
  return "";
}

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_CHECKPOINT_TESTING_H_
