// Blocks of parameters equal the same rows of the undivided parameter, for
// every source.
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/executor/uses.h"
#include "runtime/executor/weights.h"
#include "runtime/program/test_program.h"

namespace partita::executor {
namespace {

using program::AxisPart;
using program::DType;

constexpr int64_t kRows = 24, kColumns = 64;

class ShardedWeightsTest : public ::testing::Test {
 protected:
  ShardedWeightsTest() : device_(std::move(cpu::MakeCpuDevice({1})).value()) {
    folder_ = ::testing::TempDir() + "/weights_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    std::ofstream file(folder_ + "/weights.bin", std::ios::binary);
    file << std::string(256, '\0');
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      const float value = static_cast<float>(i % 251);
      file.write(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
  ~ShardedWeightsTest() override { std::filesystem::remove_all(folder_); }

  // Blocks of w0 on the ranks of data=2, tensor=3, as loaded.
  struct Loaded {
    std::vector<std::vector<char>> bytes;
    int mapped = 0;
  };
  Loaded Load(std::unique_ptr<program::ParameterT> parameter,
              const std::vector<std::vector<AxisPart>>& axes,
              program::DataSection* data = nullptr) {
    Loaded loaded;
    program::DividedProgram divided(5, 2, 3);
    parameter->name = "w0";
    const std::vector<int64_t> global = parameter->type->shape;
    if (!axes.empty()) {
      parameter->shard = program::MakeShard(global, axes);
      for (size_t i = 0; i < global.size(); ++i)
        if (!axes[i].empty())
          parameter->type->shape[i] = parameter->shard->dims[i]->block;
    }
    divided.program.parameters[0] = std::move(parameter);
    // main takes the weights and does nothing.
    divided.program.functions[0]->body.clear();
    program::ArtifactParts parts = divided.Parts();
    if (data != nullptr) parts.data = *data;
    if (data != nullptr) {
      divided.program.parameters[2] =
          program::MakeSeeded("w1", DType::f32, {1}, "zeros", 0);
      parts.program = program::SerializeProgram(divided.program);
    }
    const std::string path = folder_ + "/model.partita";
    const absl::Status written = program::WriteArtifact(path, parts);
    EXPECT_TRUE(written.ok()) << written;
    const auto artifact = program::Artifact::Open(path);
    if (!artifact.ok()) return loaded;
    const auto stream = device_->CreateStream();
    for (int64_t rank = 0; rank < 6; ++rank) {
      const program::MeshPlace place(artifact->program().mesh(), rank);
      const auto weights = Weights::Load(
          {*artifact, *device_, **stream, place, nullptr, folder_},
          FindUses(artifact->program(),
                   program::EntryAt(artifact->program(), place)));
      EXPECT_TRUE(weights.ok()) << weights.status();
      if (!weights.ok()) return loaded;
      const Global& global_value = (*weights)->globals()[0];
      loaded.bytes.emplace_back(global_value.data,
                                global_value.data + global_value.bytes);
      loaded.mapped += global_value.mapped != nullptr ? 1 : 0;
    }
    return loaded;
  }

  // Blocks must equal the rows of the undivided parameter, padded with zeros.
  void Compare(
      const std::function<std::unique_ptr<program::ParameterT>()>& make,
      int64_t element_bytes, program::DataSection* data = nullptr) {
    const std::vector<char> whole = Load(make(), {}, data).bytes[0];
    const AxisPart a(0, 1, 2), b(1, 1, 3);
    for (const std::vector<std::vector<AxisPart>>& axes :
         {std::vector<std::vector<AxisPart>>{{a}, {}},
          std::vector<std::vector<AxisPart>>{{}, {b}},
          std::vector<std::vector<AxisPart>>{{b, a}, {}},
          std::vector<std::vector<AxisPart>>{{a}, {b}}}) {
      const Loaded loaded = Load(make(), axes, data);
      const auto shard = program::MakeShard({kRows, kColumns}, axes);
      for (int64_t rank = 0; rank < 6; ++rank) {
        const int64_t ia = rank / 3, ib = rank % 3;
        const auto index = [&](const std::vector<AxisPart>& list) {
          int64_t at = 0;
          for (const AxisPart& part : list)
            at = at * part.size() + (part.axis() == 0 ? ia : ib);
          return at;
        };
        const bool rows_split = !axes[0].empty(),
                   columns_split = !axes[1].empty();
        const int64_t rows = rows_split ? shard->dims[0]->block : kRows;
        const int64_t columns =
            columns_split ? shard->dims[1]->block : kColumns;
        const std::vector<char>& block =
            loaded.bytes[static_cast<size_t>(rank)];
        ASSERT_EQ(block.size(),
                  static_cast<size_t>(rows * columns * element_bytes));
        for (int64_t i = 0; i < rows * columns * element_bytes; ++i) {
          const int64_t row =
              i / element_bytes / columns + index(axes[0]) * rows;
          const int64_t column =
              i / element_bytes % columns + index(axes[1]) * columns;
          const char expected =
              row < kRows && column < kColumns
                  ? whole[static_cast<size_t>((row * kColumns + column) *
                                                  element_bytes +
                                              i % element_bytes)]
                  : 0;
          ASSERT_EQ(block[static_cast<size_t>(i)], expected)
              << "rank " << rank << " byte " << i;
        }
      }
    }
  }

  std::string folder_;
  std::unique_ptr<device::Device> device_;
};

TEST_F(ShardedWeightsTest, FromSeeds) {
  for (const char* kind : {"normal", "uniform", "ones"}) {
    Compare(
        [&] {
          return program::MakeSeeded("w", DType::f32, {kRows, kColumns}, kind,
                                     7);
        },
        4);
  }
}

TEST_F(ShardedWeightsTest, FromFiles) {
  Compare(
      [&] {
        return program::MakeFromFile("w", DType::f32, {kRows, kColumns},
                                     "weights.bin", 256, DType::f32);
      },
      4);
}

// The rows in another order than in the file, and in f32 as well as bf16.
std::unique_ptr<program::ParameterT> MakeInParts(DType dtype) {
  auto parameter =
      program::MakeSeeded("w", dtype, {kRows, kColumns}, "ones", 0);
  program::PartsSourceT source;
  for (uint64_t row = 0; row < kRows; ++row) {
    auto part = std::make_unique<program::FileSourceT>();
    part->path = "weights.bin";
    part->offset = 256 + (kRows - 1 - row) * kColumns * 4;
    part->bytes = kColumns * 4;
    part->stored = DType::f32;
    source.parts.push_back(std::move(part));
  }
  parameter->source.Set(std::move(source));
  return parameter;
}

TEST_F(ShardedWeightsTest, InParts) {
  Compare([] { return MakeInParts(DType::f32); }, 4);
  Compare([] { return MakeInParts(DType::bf16); }, 2);
  const std::vector<char> whole = Load(MakeInParts(DType::f32), {}).bytes[0];
  for (int64_t row : {0, 5, 23}) {
    float value;
    std::memcpy(&value, &whole[static_cast<size_t>(row * kColumns * 4)], 4);
    EXPECT_EQ(value, static_cast<float>((kRows - 1 - row) * kColumns % 251));
  }
}

TEST_F(ShardedWeightsTest, Converted) {
  Compare(
      [&] {
        return program::MakeFromFile("w", DType::bf16, {kRows, kColumns},
                                     "weights.bin", 256, DType::f32);
      },
      2);
}

TEST_F(ShardedWeightsTest, Embedded) {
  program::DataSection data;
  std::string bytes;
  for (int64_t i = 0; i < kRows * kColumns * 4; ++i)
    bytes.push_back(static_cast<char>(i * 31 % 127));
  const int64_t offset = data.Add(bytes);
  Compare(
      [&] {
        return program::MakeEmbedded("w", DType::f32, {kRows, kColumns},
                                     static_cast<uint64_t>(offset), DType::f32);
      },
      4, &data);
}

TEST_F(ShardedWeightsTest, RowsStayInTheFile) {
  const auto make = [] {
    return program::MakeFromFile("w", DType::f32, {kRows, kColumns},
                                 "weights.bin", 256, DType::f32);
  };
  const AxisPart a(0, 1, 2), b(1, 1, 3);
  EXPECT_EQ(Load(make(), {}).mapped, 6);
  EXPECT_EQ(Load(make(), {{a}, {}}).mapped, 6);
  EXPECT_EQ(Load(make(), {{a, b}, {}}).mapped, 6);
  EXPECT_EQ(Load(make(), {{}, {a}}).mapped, 0);
}

}  // namespace
}  // namespace partita::executor
