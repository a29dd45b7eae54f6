// Breaks every rule about launches once.
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/program/test_program.h"
#include "runtime/program/validate.h"
#include "runtime/program/validate_testing.h"

namespace partita::program {
namespace {

TEST(ValidateLaunchTest, HaveAGeometry) {
  const auto after = [](const std::function<void(LaunchT&)>& change,
                        const char* target = "cuda:sm_80") {
    LaunchT launch;
    launch.grid = {4, 2, 1};
    launch.block = {128, 2, 1};
    launch.shared_bytes = 1024;
    change(launch);
    SampleProgram sample;
    sample.program.target = target;
    sample.program.kernels.push_back(MakeKernel("k"));
    Main(sample.program).body.push_back(MakeLaunch(launch, {}, 0));
    const std::string bytes = SerializeProgram(sample.program);
    return std::string(
        ValidateProgram(*GetProgram(bytes.data()), 128, /*has_code=*/true)
            .message());
  };
  const std::string where = "function 'main', instruction 4: launch on a GPU: ";
  EXPECT_EQ(after([](LaunchT&) {}), "");
  EXPECT_EQ(
      after([](LaunchT& l) { l.grid.clear(); }),
      where + "expected a grid and a block of 3 sizes each, found 0 and 3");
  EXPECT_EQ(after([](LaunchT& l) { l.grid[1] = 65536; }),
            where + "65536 blocks of 2 threads along y is out of range");
  EXPECT_EQ(after([](LaunchT& l) { l.block[2] = 65; }),
            where + "1 blocks of 65 threads along z is out of range");
  EXPECT_EQ(after([](LaunchT& l) { l.block[1] = 16; }),
            where +
                "a block of 2048 threads with 1024 bytes of shared memory "
                "is out of range");
  EXPECT_EQ(after([](LaunchT& l) { l.scratch_bytes = 4096; }), "");
  // Its grain is 0, and a CPU would divide by it.
  EXPECT_EQ(after([](LaunchT&) {}, "cpu"),
            "function 'main', instruction 4: launch: a grid, block or "
            "tensor map in a program for no GPU");
  EXPECT_EQ(after([](LaunchT& l) { l.scratch_bytes = -1; }),
            "function 'main', instruction 4: launch: range 0, grain 0 or "
            "scratch of -1 bytes is out of range");
  EXPECT_EQ(after([](LaunchT& l) { l.shared_bytes = -1; }),
            where +
                "a block of 256 threads with -1 bytes of shared memory is "
                "out of range");
}

TEST(ValidateLaunchTest, CyclesOfKernelsAreNumbers) {  // V16
  const auto after = [](double cycles) {
    SampleProgram sample;
    sample.program.kernels.push_back(MakeKernel("k", cycles));
    const std::string bytes = SerializeProgram(sample.program);
    return std::string(
        ValidateProgram(*GetProgram(bytes.data()), 128, /*has_code=*/true)
            .message());
  };
  EXPECT_EQ(after(0), "");
  EXPECT_EQ(after(1.5), "");
  EXPECT_EQ(after(-1.5), "kernel 'k': -1.5 cycles");
  EXPECT_EQ(after(std::numeric_limits<double>::infinity()),
            "kernel 'k': inf cycles");
  EXPECT_EQ(after(std::numeric_limits<double>::quiet_NaN()),
            "kernel 'k': nan cycles");
}

TEST(ValidateLaunchTest, HaveTensorMaps) {  // V7
  const auto after = [](const std::function<void(TensorMapT&)>& change,
                        const char* target = "cuda:sm_90a", size_t maps = 1) {
    LaunchT launch;
    launch.grid = launch.block = {1, 1, 1};
    for (size_t i = 0; i < maps; ++i) {
      TensorMapT map;
      map.operand = 1;
      map.offset = 16;
      map.dtype = DType::bf16;
      map.shape = {2, 3, 64};
      // Rows of one head are between rows of the other.
      map.strides = {128, 256};
      map.box = {1, 64, 64};
      map.swizzle = Swizzle::bytes128;
      change(map);
      launch.maps.push_back(std::make_unique<TensorMapT>(map));
    }
    SampleProgram sample;
    sample.program.target = target;
    sample.program.kernels.push_back(MakeKernel("k"));
    FunctionT& main = Main(sample.program);
    main.frame_bytes += 4096;
    main.body.push_back(MakeLaunch(
        launch, {Frame(0, 64), Frame(64, 784), Frame(1024, 1024)}, 1));
    const std::string bytes = SerializeProgram(sample.program);
    const std::string found(
        ValidateProgram(*GetProgram(bytes.data()), 128, /*has_code=*/true)
            .message());
    const std::string where =
        "function 'main', instruction 4: launch: tensor map 0: ";
    return found.rfind(where, 0) == 0 ? found.substr(where.size()) : found;
  };
  EXPECT_EQ(after([](TensorMapT&) {}), "");
  EXPECT_EQ(after([](TensorMapT& m) { m.operand = 2; }), "operand 2 of 2");
  EXPECT_EQ(after([](TensorMapT& m) { m.operand = -1; }), "operand -1 of 2");
  EXPECT_EQ(after([](TensorMapT& m) { m.swizzle = static_cast<Swizzle>(2); }),
            "an unknown element type or swizzle");
  EXPECT_EQ(after([](TensorMapT& m) { m.dtype = static_cast<DType>(15); }),
            "an unknown element type or swizzle");
  EXPECT_EQ(after([](TensorMapT& m) { m.shape.clear(); }),
            "expected 1 to 5 dimensions, found 0");
  EXPECT_EQ(after([](TensorMapT& m) { m.shape.resize(6, 1); }),
            "expected 1 to 5 dimensions, found 6");
  EXPECT_EQ(after([](TensorMapT& m) { m.shape[0] = 0; }),
            "its shape has 0, expected numbers from 1 to 4294967296");
  EXPECT_EQ(after([](TensorMapT& m) { m.strides.push_back(2); }),
            "expected 2 sizes in its strides, found 3");
  EXPECT_EQ(
      after([](TensorMapT& m) { m.strides[0] = 120; }),
      "its strides has 120, expected multiples of 16 from 16 to 1099511627760");
  EXPECT_EQ(after([](TensorMapT& m) { m.box[1] = 257; }),
            "its box has 257, expected numbers from 1 to 256");
  const std::string rows =
      " bytes, expected a multiple of 16, at most 128 if swizzled";
  EXPECT_EQ(after([](TensorMapT& m) { m.box[2] = 4; }),
            "rows of its box have 8" + rows);
  EXPECT_EQ(after([](TensorMapT& m) { m.box[2] = 72; }),
            "rows of its box have 144" + rows);
  EXPECT_EQ(after([](TensorMapT& m) {
              m.box[2] = 72;
              m.swizzle = Swizzle::none;
            }),
            "");
  const std::string inside =
      "expected it from a multiple of 16 on inside its operand, of 784 bytes; "
      "found offset ";
  EXPECT_EQ(after([](TensorMapT& m) { m.offset = 32; }),
            inside + "32 and end 800");
  EXPECT_EQ(after([](TensorMapT& m) { m.offset = 8; }), inside + "8");
  EXPECT_EQ(after([](TensorMapT& m) { m.offset = -16; }), inside + "-16");
  EXPECT_EQ(after([](TensorMapT& m) {
              m.shape[0] = int64_t{1} << 32;
              m.strides[0] = int64_t{1} << 39;
            }),
            inside + "16");
  EXPECT_EQ(after([](TensorMapT&) {}, "cuda:sm_90a", 17),
            "function 'main', instruction 4: launch: expected at most 16 "
            "tensor maps, found 17");
  EXPECT_EQ(after([](TensorMapT&) {}, "cpu"),
            "function 'main', instruction 4: launch: a grid, block or tensor "
            "map in a program for no GPU");
}

TEST(ValidateLaunchTest, Pieces) {  // V7
  const auto found = [](std::vector<int64_t> ranges, int64_t range,
                        int operands, int outputs) {
    return After([&](ProgramT& p) {
      LaunchT launch;
      launch.range = range;
      launch.grain = 1;
      launch.ranges = std::move(ranges);
      Main(p).body.push_back(
          MakeLaunch(launch,
                     std::vector<Buffer>(static_cast<size_t>(operands),
                                         Buffer(Space::frame, 0, 4)),
                     outputs));
    });
  };
  const std::string at = "function 'main', instruction 4: ";
  EXPECT_EQ(found({3, 4}, 7, 6, 2), at + "kernel 0 of 0");  // The next check.
  EXPECT_EQ(found({3}, 3, 3, 1),
            at + "launch: 1 pieces with 3 operands, 1 of them written");
  EXPECT_EQ(found({3, 4}, 7, 5, 2),
            at + "launch: 2 pieces with 5 operands, 2 of them written");
  EXPECT_EQ(found({3, 4}, 7, 6, 1),
            at + "launch: 2 pieces with 6 operands, 1 of them written");
  EXPECT_EQ(found({3, 4}, 7, 130, 2),
            at + "launch: 2 pieces with 130 operands, 2 of them written");
  EXPECT_EQ(found({3, 5}, 7, 6, 2),
            at + "launch: pieces are more than the range");
  EXPECT_EQ(found({-3, 10}, 7, 6, 2),
            at + "launch: pieces are more than the range");
  EXPECT_EQ(found({3, 3}, 7, 6, 2),
            at + "launch: pieces are less than the range");
}

TEST(ValidateLaunchTest, PiecesOnGpus) {  // V7
  const auto found = [](int pieces, int64_t scratch) {
    return After([&](ProgramT& p) {
      LaunchT launch;
      launch.range = pieces;
      launch.ranges.assign(static_cast<size_t>(pieces), 1);
      launch.grid = launch.block = {1, 1, 1};
      launch.scratch_bytes = scratch;
      Main(p).body.push_back(
          MakeLaunch(launch,
                     std::vector<Buffer>(static_cast<size_t>(3 * pieces),
                                         Buffer(Space::frame, 0, 4)),
                     pieces));
    });
  };
  const std::string at = "function 'main', instruction 4: ";
  EXPECT_EQ(found(1, 0), at + "kernel 0 of 0");  // The next check.
  EXPECT_EQ(found(128, 0), at + "kernel 0 of 0");
  EXPECT_EQ(found(129, 0),
            at +
                "launch on a GPU: 129 pieces of 3 operands, 0 bytes of scratch "
                "or a tensor map do not fit a table of 4096 bytes");
  EXPECT_EQ(found(2, 8),
            at + "launch on a GPU: 2 pieces of 3 operands, 8 bytes of scratch "
                 "or a tensor map do not fit a table of 4096 bytes");
}

}  // namespace
}  // namespace partita::program
