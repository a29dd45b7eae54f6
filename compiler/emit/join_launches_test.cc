// Which launches become one, and which may not.
#include "compiler/emit/join_launches.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::emit {
namespace {

using program::Buffer;
using program::FunctionT;
using program::InstructionT;
using program::LaunchT;
using program::Space;
using ::testing::ElementsAre;

Buffer Argument(int64_t index) { return Buffer(Space::argument, index, 64); }
Buffer Frame(int64_t begin, int64_t bytes) {
  return Buffer(Space::frame, begin, bytes);
}

std::unique_ptr<InstructionT> Launch(int kernel, int64_t range,
                                     std::vector<Buffer> operands,
                                     int outputs) {
  auto instruction = std::make_unique<InstructionT>();
  LaunchT launch;
  launch.kernel = kernel;
  launch.range = range;
  launch.grain = 2;
  instruction->operation.Set(std::move(launch));
  instruction->operands = std::move(operands);
  instruction->outputs = outputs;
  instruction->name = "w" + std::to_string(range);
  return instruction;
}

// Arguments 0 .. 3, of which 2 and 3 are results; 2 updates 0.
const std::vector<int64_t> kMemory = {0, 1, 0, 3};

std::vector<std::vector<int64_t>> RangesOf(const FunctionT& function) {
  std::vector<std::vector<int64_t>> ranges;
  for (const auto& instruction : function.body) {
    const LaunchT* launch = instruction->operation.AsLaunch();
    ranges.push_back(launch == nullptr ? std::vector<int64_t>{-1}
                                       : launch->ranges);
  }
  return ranges;
}

std::vector<std::string> PlacesOf(const InstructionT& instruction) {
  std::vector<std::string> places;
  for (const Buffer& buffer : instruction.operands)
    places.push_back(std::string(program::EnumNameSpace(buffer.space())) + " " +
                     std::to_string(buffer.value()));
  return places;
}

FunctionT Of(std::unique_ptr<InstructionT> first,
             std::unique_ptr<InstructionT> second) {
  FunctionT function;
  function.arguments = 4;
  function.body.push_back(std::move(first));
  function.body.push_back(std::move(second));
  joinLaunches(function, kMemory);
  return function;
}

TEST(JoinLaunchesTest, InputsOfAllThenOutputsOfAll) {
  const FunctionT function =
      Of(Launch(7, 10, {Argument(0), Frame(0, 64), Argument(2)}, 1),
         Launch(7, 20, {Argument(1), Frame(64, 64), Argument(3)}, 1));
  ASSERT_EQ(function.body.size(), 1u);
  const InstructionT& joined = *function.body[0];
  const LaunchT& launch = *joined.operation.AsLaunch();
  EXPECT_EQ(launch.kernel, 7);
  EXPECT_EQ(launch.range, 30);
  EXPECT_THAT(launch.ranges, ElementsAre(10, 20));
  EXPECT_THAT(PlacesOf(joined),
              ElementsAre("argument 0", "frame 0", "argument 1", "frame 64",
                          "argument 2", "argument 3"));
  EXPECT_EQ(joined.outputs, 2);
  EXPECT_EQ(joined.name, "w10 and 1 more");
}

TEST(JoinLaunchesTest, WhatOneWritesNoOtherTouches) {
  const std::vector<std::pair<std::vector<Buffer>, std::vector<Buffer>>> pairs =
      {
          // Read behind the write, and in front of it; written twice.
          {{Argument(1), Frame(0, 64)}, {Frame(32, 64), Argument(3)}},
          {{Frame(32, 64), Argument(3)}, {Argument(1), Frame(0, 64)}},
          {{Argument(1), Frame(0, 64)}, {Argument(1), Frame(63, 1)}},
          // Argument 2 is the memory of argument 0.
          {{Argument(0), Argument(3)}, {Argument(1), Argument(2)}},
          {{Argument(1), Argument(2)}, {Argument(0), Argument(3)}},
      };
  for (const auto& [first, second] : pairs)
    EXPECT_EQ(Of(Launch(0, 1, first, 1), Launch(0, 1, second, 1)).body.size(),
              2u);
  // Side by side, and what both read.
  EXPECT_EQ(Of(Launch(0, 1, {Argument(1), Frame(0, 64)}, 1),
               Launch(0, 1, {Argument(1), Frame(64, 64)}, 1))
                .body.size(),
            1u);
}

TEST(JoinLaunchesTest, OthersStayApart) {
  EXPECT_EQ(Of(Launch(0, 1, {Argument(1), Frame(0, 64)}, 1),
               Launch(1, 1, {Argument(1), Frame(64, 64)}, 1))
                .body.size(),
            2u);
  FunctionT function;
  function.arguments = 4;
  for (int i = 0; i < 5; ++i) {
    if (i == 2) {
      function.body.push_back(std::make_unique<InstructionT>());
      function.body.back()->operation.Set(program::CopyT());
      continue;
    }
    function.body.push_back(
        Launch(0, i + 1, {Argument(1), Frame(64 * i, 64)}, 1));
  }
  joinLaunches(function, kMemory);
  EXPECT_THAT(
      RangesOf(function),
      ElementsAre(ElementsAre(1, 2), ElementsAre(-1), ElementsAre(4, 5)));
}

}  // namespace
}  // namespace partita::emit
