// Tensor maps reach kernels with the operands' current addresses, whether run,
// captured or replayed.
#include "runtime/cuda/tensor_maps.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_executor_testing.h"
#include "runtime/executor/executor.h"
#include "runtime/program/test_program.h"

namespace partita::cuda {
namespace {

using recording::RecordedTensorMap;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPtx[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    ".visible .entry take_box(.param .u64 a, .param .u64 b, "
    ".param .align 64 .b8 m[128]) { ret; }\n";
constexpr char kEncode[] = "cuTensorMapEncodeTiled 2\n";
constexpr int64_t kColumns = 8, kRows = 6, kFirst = 3;

// A kernel that copies the map's box, from row kFirst on, to the second
// operand.
void TakeBox(void** parameters, const recording::Place&) {
  float* const to = *static_cast<float**>(parameters[1]);
  RecordedTensorMap map;
  std::memcpy(&map, parameters[2], sizeof(map));
  for (uint64_t row = 0; row < map.box[1]; ++row)
    for (uint64_t column = 0; column < map.box[0]; ++column) {
      const uint64_t from = row + kFirst;
      float value = 0;
      if (from < map.sizes[1] && column < map.sizes[0])
        std::memcpy(&value,
                    reinterpret_cast<const char*>(map.address) +
                        from * map.strides[0] + 4 * column,
                    sizeof(value));
      to[row * map.box[0] + column] = value;
    }
}

// A map of f32[kRows, kColumns], 16 bytes into the operand.
device::TensorMapDesc BoxOfRows() {
  device::TensorMapDesc desc;
  desc.offset = 16;
  desc.shape = {kRows, kColumns};
  desc.strides = {4 * kColumns};
  desc.box = {4, kColumns};
  return desc;
}

Floats BoxOf(const Floats& x) {
  Floats box(4 * kColumns, 0);
  for (size_t i = 0;
       i + 4 + kFirst * kColumns < x.size() && i < (kRows - kFirst) * kColumns;
       ++i)
    box[i] = x[4 + kFirst * kColumns + i];
  return box;
}

class TensorMapsTest : public CudaExecutorTest {
 protected:
  TensorMapsTest() {
    recording_.Register("take_box", &TakeBox);
    device_ = std::move(MakeCudaDevice({0, kLibrary, kLibrary})).value();
    stream_ = std::move(device_->CreateStream()).value();
    module_ = std::move(device_->LoadModule(kPtx)).value();
  }

  absl::Status Launch(void* x, void* y, device::TensorMaps* maps) {
    device::LaunchShape shape;
    shape.grid = shape.block = {1, 1, 1};
    shape.maps = maps;
    void* buffers[] = {x, y};
    return device_->Launch(*stream_, *module_->Find("take_box").value(), shape,
                           buffers, 2);
  }

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<device::Module> module_;
};

TEST_F(TensorMapsTest, AreEncodedOnceAndWhereOperandsMove) {
  const Floats x = Seeded(4 + kRows * kColumns, 3);
  const int64_t bytes = static_cast<int64_t>(4 * x.size()), step = 256;
  const auto memory =
      std::move(device::Allocation::Make(*device_, 4 * step)).value();
  char* const y = memory.data() + 3 * step;
  void* const known[] = {memory.data(), y};
  recording_.TakeLog();
  const auto maps =
      std::move(device_->PrepareMaps({BoxOfRows()}, known)).value();
  EXPECT_EQ(recording_.TakeLog(), kEncode);
  for (const int64_t at : {int64_t{0}, int64_t{0}, step}) {
    char* const from = memory.data() + at;
    ASSERT_TRUE(device_->CopyToDevice(*stream_, from, x.data(), bytes).ok());
    recording_.TakeLog();
    ASSERT_TRUE(Launch(from, y, maps.get()).ok());
    EXPECT_THAT(recording_.TakeLog(),
                at == 0 ? testing::Not(HasSubstr(kEncode))
                        : testing::Matcher<std::string>(HasSubstr(kEncode)));
    Floats found(4 * kColumns);
    ASSERT_TRUE(device_->CopyToHost(*stream_, found.data(), y, 128).ok());
    ASSERT_TRUE(device_->Synchronize(*stream_).ok());
    EXPECT_EQ(found, BoxOf(x));
  }
}

// A map of attention keys. All sizes, strides and box sides differ.
TEST_F(TensorMapsTest, ReachTheDriverInItsOrder) {
  device::TensorMapDesc keys;
  keys.operand = 1;
  keys.offset = 384;
  keys.dtype = base::DType::kBF16;
  keys.shape = {2, 3, 75, 64};
  keys.strides = {75 * 1168, 128, 1168};
  keys.box = {1, 2, 70, 32};
  keys.swizzled = true;
  alignas(256) char memory[512];
  void* const buffers[] = {nullptr, memory};
  const auto context =
      std::move(Context::Open(Driver::Open(kLibrary).value(), 0)).value();
  const auto recorded = [&] {
    const auto maps =
        std::move(CudaTensorMaps::Make(context, {keys}, buffers)).value();
    RecordedTensorMap map;
    std::memcpy(&map, maps->parameter(0), sizeof(map));
    return map;
  };
  RecordedTensorMap map = recorded();
  EXPECT_EQ(map.address, reinterpret_cast<uintptr_t>(memory + 384));
  EXPECT_EQ(map.rank, 4);
  EXPECT_EQ(map.type, kCuMapBF16);
  EXPECT_THAT(map.sizes, ElementsAre(64, 75, 3, 2, 0));
  EXPECT_THAT(map.strides, ElementsAre(1168, 128, 75 * 1168, 0));
  EXPECT_THAT(map.box, ElementsAre(32, 70, 2, 1, 0));
  EXPECT_THAT(map.steps, ElementsAre(1, 1, 1, 1, 0));
  EXPECT_EQ(map.interleave, kCuMapNoInterleave);
  EXPECT_EQ(map.swizzle, kCuMapSwizzle128);
  EXPECT_EQ(map.promotion, kCuMapPromote128);
  EXPECT_EQ(map.fill, kCuMapFillZeros);
  keys.swizzled = false;
  EXPECT_EQ(recorded().swizzle, kCuMapNoSwizzle);
  // Every type has its driver name and size.
  using base::DType;
  for (const auto& [dtype, type] : {std::pair(DType::kF16, kCuMapF16),
                                    {DType::kF32, kCuMapF32},
                                    {DType::kF64, kCuMapF64},
                                    {DType::kI1, kCuMapU8},
                                    {DType::kI8, kCuMapU8},
                                    {DType::kU8, kCuMapU8},
                                    {DType::kI16, kCuMapU16},
                                    {DType::kU16, kCuMapU16},
                                    {DType::kI32, kCuMapI32},
                                    {DType::kU32, kCuMapU32},
                                    {DType::kI64, kCuMapI64},
                                    {DType::kU64, kCuMapU64}}) {
    keys.dtype = dtype;
    EXPECT_EQ(recorded().type, type) << base::NameOf(dtype);
  }
}

TEST_F(TensorMapsTest, WhatTheDriverDoesNotTakeIsAnError) {
  const auto memory =
      std::move(device::Allocation::Make(*device_, 4096)).value();
  void* const known[] = {memory.data(), nullptr};
  device::TensorMapDesc desc = BoxOfRows();
  desc.strides = {40};
  const absl::Status status = device_->PrepareMaps({desc}, known).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("encoding a tensor map of f32[6,8] with strides "
                              "of [40] bytes, at "),
                    HasSubstr(" + 16: CUDA_ERROR_INVALID_VALUE")));
  // Launch encodes maps whose operands were unknown before.
  void* const unknown[] = {nullptr, nullptr};
  const auto maps = device_->PrepareMaps({desc}, unknown);
  ASSERT_TRUE(maps.ok()) << maps.status();
  EXPECT_FALSE(Launch(memory.data(), memory.data(), maps->get()).ok());
  // A launch without the kernel's maps fails.
  EXPECT_THAT(
      std::string(Launch(memory.data(), memory.data(), nullptr).message()),
      HasSubstr("it takes 3 parameters, found 2"));
}

TEST_F(TensorMapsTest, DriversWithoutThemAreRefused) {
  auto old = std::make_shared<Driver>(*Driver::Open(kLibrary).value());
  old->EncodeTensorMap = nullptr;
  const auto context = std::move(Context::Open(old, 0)).value();
  void* const known[] = {nullptr};
  const absl::Status status =
      CudaTensorMaps::Make(context, {BoxOfRows()}, known).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(std::string(status.message()),
            "the model's kernels copy by tensor maps, and this driver has no "
            "function cuTensorMapEncodeTiled: install a driver for CUDA 12.0 "
            "or newer");
}

// A program that copies a box of its input is bound, run, captured and
// replayed.
TEST_F(TensorMapsTest, ProgramsSayThem) {
  constexpr int64_t kIn = 4 * (4 + kRows * kColumns), kOut = 4 * 4 * kColumns;
  program::ProgramT program;
  program.producer = "test";
  program.target = "cuda:sm_90a";
  program.cpu_features = "+ptx80";
  program.kernels.push_back(program::MakeKernel("take_box"));
  program.inputs.push_back(
      program::MakePort("x", program::DType::f32, {kIn / 4}));
  program.outputs.push_back(
      program::MakePort("y", program::DType::f32, {4, kColumns}));
  program::LaunchT launch;
  launch.grid = launch.block = {1, 1, 1};
  auto map = std::make_unique<program::TensorMapT>();
  map->offset = 16;
  map->dtype = program::DType::f32;
  map->shape = {kRows, kColumns};
  map->strides = {4 * kColumns};
  map->box = {4, kColumns};
  launch.maps.push_back(std::move(map));
  auto main = program::MakeFunction("main", 2, 1, 0);
  main->body.push_back(program::MakeLaunch(
      launch, {program::Argument(0, kIn), program::Argument(1, kOut)}, 1));
  program.functions.push_back(std::move(main));
  program::AddEntry(program, 0, {});
  ASSERT_TRUE(program::WriteArtifact(path_, {program::SerializeProgram(program),
                                             kPtx, program::DataSection()})
                  .ok());
  auto executor = executor::Executor::Load(path_, *device_);
  ASSERT_TRUE(executor.ok()) << executor.status();
  recording_.TakeLog();
  std::string log;
  for (uint64_t run = 0; run < 4; ++run) {
    const Floats x = Seeded(kIn / 4, 20 + run);
    Floats y(4 * kColumns, -1);
    const absl::Status status =
        (*executor)->Run({{DType::kF32, {kIn / 4}, x.data()}},
                         {{DType::kF32, {4, kColumns}, y.data()}});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(y, BoxOf(x)) << run;
    log = recording_.TakeLog();
    EXPECT_EQ(log.find(kEncode) != std::string::npos, run == 0) << log;
  }
  EXPECT_THAT(log, HasSubstr("cuGraphLaunch"));
}

}  // namespace
}  // namespace partita::cuda
