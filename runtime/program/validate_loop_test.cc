// Breaks every rule of loops once.
#include <functional>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "runtime/program/test_loop_program.h"
#include "runtime/program/test_program.h"
#include "runtime/program/validate.h"

namespace partita::program {
namespace {

std::string After(const std::function<void(LoopProgram&)>& change) {
  LoopProgram loop;
  change(loop);
  const std::string bytes = SerializeProgram(loop.program);
  return std::string(ValidateProgram(*GetProgram(bytes.data()),
                                     loop.data.size(), /*has_code=*/false)
                         .message());
}

constexpr char kWhere[] = "function 'main', call of 'body': ";

TEST(ValidateLoopTest, TheLoopIsValid) {
  EXPECT_EQ(After([](LoopProgram&) {}), "");
}

TEST(ValidateLoopTest, CarriedValuesKeepTheirSizes) {  // V18
  EXPECT_EQ(After([](LoopProgram& p) { p.Loop().operands[3] = Frame(0, 192); }),
            std::string(kWhere) +
                "a loop's carried value 3 begins with 192 bytes and has 128");
  EXPECT_EQ(After([](LoopProgram& p) {
              p.Loop().operands[0] = Frame(0, 2);
              p.Loop().operands[5] = Frame(0, 2);
            }),
            std::string(kWhere) + "a loop's condition has 2 bytes");
}

TEST(ValidateLoopTest, IterationsLieInsideTheFrame) {  // V18
  for (const int64_t bytes : {0, 64, 256})
    EXPECT_EQ(After([&](LoopProgram& p) {
                p.program.functions[1]->frame_bytes = bytes;
              }),
              std::string(kWhere) +
                  "the results of an iteration lie outside the caller's frame")
        << bytes;
  EXPECT_EQ(After([](LoopProgram& p) {
              p.Loop().operation.AsCall()->frame_offset = 64;
            }),
            std::string(kWhere) +
                "the results of an iteration lie outside the caller's frame");
  // Sizes that overflow.
  EXPECT_EQ(After([](LoopProgram& p) {
              const int64_t most = std::numeric_limits<int64_t>::max();
              p.Loop().operands[3] = Argument(3, most);
              p.Loop().operands[8] = Argument(8, most);
            }),
            std::string(kWhere) +
                "the results of an iteration lie outside the caller's frame");
}

TEST(ValidateLoopTest, LoopsCarryACondition) {  // V18
  EXPECT_EQ(After([](LoopProgram& p) {
              p.program.functions[0]->results = 0;
              p.program.functions[0]->body.clear();
              p.Loop().outputs = 0;
            }),
            std::string(kWhere) + "a loop that carries 0 of 9 inputs");
  EXPECT_EQ(After([](LoopProgram& p) {
              p.program.functions[0]->results = 5;
              p.Loop().outputs = 5;
              p.Loop().operands[4] = Frame(0, 256);
              p.program.functions[1]->frame_bytes = 1024;
            }),
            std::string(kWhere) + "a loop that carries 5 of 4 inputs");
}

TEST(ValidateLoopTest, LoopsDoNotContainThemselves) {  // V4
  EXPECT_EQ(
      After([](LoopProgram& p) { p.Loop().operation.AsCall()->function = 1; }),
      "function 'main' calls itself");
}

TEST(ValidateLoopTest, CollectivesOfLoopsAreNotOnlyStarted) {  // V18
  EXPECT_EQ(
      After([](LoopProgram& p) {
        p.program.mesh = MakeMesh({{"data", 1}});
        auto sum = MakeSum({WholeAxis(0, 1)}, {4, 8}, Argument(3, 128),
                           Argument(8, 128), "sum");
        sum->operation.AsCollective()->token = 1;
        auto& body = p.program.functions[0]->body;
        body[3] = std::move(sum);
        body.push_back(MakeAwait(1));
      }),
      std::string(kWhere) + "a loop in which a collective is only started");
}

TEST(ValidateLoopTest, PipelinesHaveNoLoops) {  // V18
  EXPECT_EQ(After([](LoopProgram& p) {
              p.program.mesh = MakeMesh({{"pipe", 2}});
              p.program.pipeline = {WholeAxis(0, 2)};
              AddEntry(p.program, 1, {0});
            }),
            std::string(kWhere) + "a loop in a pipeline");
}

}  // namespace
}  // namespace partita::program
