// Finds paths back from an outcome, on tensors of this test.
#include "runtime/executor/nan_trace.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::executor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Floats = std::vector<float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                kInfinity = std::numeric_limits<float>::infinity();

class NanTraceTest : public ::testing::Test {
 protected:
  // A step that wrote the present values of `output`; all tensors are f32[2, n
  // / 2].
  void Step(const std::vector<Floats*>& inputs, Floats& output,
            bool collective = false) {
    program::InstructionT instruction;
    if (collective) {
      instruction.operation.Set(program::CollectiveT());
    } else {
      instruction.operation.Set(program::CopyT());
    }
    std::vector<void*> operands;
    const auto add = [&](Floats& values) {
      operands.push_back(values.data());
      instruction.operands.emplace_back(
          program::Space::argument, 0,
          static_cast<int64_t>(values.size() * sizeof(float)));
    };
    for (Floats* input : inputs) add(*input);
    add(output);
    instruction.outputs = 1;
    auto type = std::make_unique<program::TensorTypeT>();
    type->shape = {2, static_cast<int64_t>(output.size()) / 2};
    instruction.output_types.push_back(std::move(type));
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(program::Instruction::Pack(builder, &instruction));
    trace_.AddStep(
        steps_++,
        *flatbuffers::GetRoot<program::Instruction>(builder.GetBufferPointer()),
        operands.data());
  }

  void Outcome(const Floats& values) {
    const int64_t count = static_cast<int64_t>(values.size());
    trace_.AddOutcome(
        values.data(), count * 4,
        NanTrace::At(base::DType::kF32, values.data(), count).kind);
  }

  std::string Find() const {
    const auto found = trace_.Find(trace_.worst());
    return found ? found->text : "nothing";
  }

  int64_t steps_ = 0;
  NanTrace trace_{[](int64_t step) { return absl::StrCat("step ", step); }};
};

TEST_F(NanTraceTest, TheFirstMakerOnTheWay) {
  Floats x = {1, 2, 3, 4}, y = {1, 2, kNan, 4}, z = {kNan, kNan, 1, 2},
         loss = {kNan, 0};
  Step({&x}, y);
  Step({&y}, z);
  Step({&z, &x}, loss);
  Outcome(loss);
  EXPECT_EQ(trace_.worst(), NumberKind::kNan);
  EXPECT_EQ(Find(), "step 0 made NaN, first in element [1, 0] of f32[2,2]");
}

TEST_F(NanTraceTest, WhatIsNotOnTheWayDoesNotCount) {
  Floats padding = {kNan, 1}, mask = {-kInfinity, 0}, x = {1, 2}, y = {kNan, 3},
         loss = {kNan, 1};
  Step({}, padding);
  Step({}, mask);
  Step({&x, &mask}, x);
  Step({&x}, y);
  Step({&y}, loss);
  Outcome(loss);
  EXPECT_THAT(Find(), StartsWith("step 3 made NaN"));
  EXPECT_THAT(Find(), Not(HasSubstr("infinite")));
}

TEST_F(NanTraceTest, FiniteOutcomesAreNoTrouble) {
  Floats mask = {-kInfinity, 0}, loss = {1, 2};
  Step({}, mask);
  Step({&mask}, loss);
  Outcome(loss);
  EXPECT_EQ(trace_.worst(), NumberKind::kFinite);
}

TEST_F(NanTraceTest, InfinitiesThatBecomeNaN) {
  Floats x = {1, 2}, large = {kInfinity, 2}, same = {kInfinity, 2},
         difference = {kNan, 0};
  Step({&x}, large);
  Step({&large}, same);
  Step({&same}, difference);
  Outcome(difference);
  EXPECT_EQ(Find(),
            "step 2 made NaN, first in element [0, 0] of f32[2,1], of an "
            "infinite number: step 0 made an infinite number, first in element "
            "[0, 0] of f32[2,1]");
}

TEST_F(NanTraceTest, MemoryIsUsedAgain) {
  Floats x = {1, 2}, reused = {kNan, 1}, loss = {kNan, 1};
  Step({&x}, reused);
  reused = {1, 1};
  Step({&x}, reused);
  Step({&reused}, loss);
  Outcome(loss);
  EXPECT_THAT(Find(), StartsWith("step 2 made NaN"));
}

TEST_F(NanTraceTest, WhatCameIn) {
  Floats x = {1, kNan}, loss = {kNan, 1};
  trace_.AddSource("input 'x'", x.data(), 8,
                   NanTrace::At(base::DType::kF32, x.data(), 2));
  Step({&x}, loss);
  Outcome(loss);
  EXPECT_EQ(Find(), "input 'x' holds NaN before the step");
  EXPECT_EQ(trace_.Find(NumberKind::kNan)->order, -1);
}

// The sending rank reports the origin.
TEST_F(NanTraceTest, WhatOthersSentComesLast) {
  Floats own = {1, 2}, sum = {kNan, 2};
  Step({&own}, sum, /*collective=*/true);
  Outcome(sum);
  const auto received = trace_.Find(NumberKind::kNan);
  ASSERT_TRUE(received);

  trace_.Begin();
  Floats made = {kNan, 2}, kept = {1, 2};
  Step({&own}, made);
  Step({&made}, kept, /*collective=*/true);
  Outcome(kept);  // the other rank has all of it
  EXPECT_EQ(trace_.worst(), NumberKind::kFinite);
  const auto sent = trace_.Find(NumberKind::kNan);
  ASSERT_TRUE(sent);
  EXPECT_THAT(sent->text, StartsWith("step 1 made NaN"));
  EXPECT_LT(sent->order, received->order);
}

TEST(LookTest, EveryFloat) {
  const double f64[] = {1, kInfinity, kNan};
  EXPECT_EQ(NanTrace::At(base::DType::kF64, f64, 2).kind,
            NumberKind::kInfinite);
  EXPECT_EQ(NanTrace::At(base::DType::kF64, f64, 3).element, 2);
  const uint16_t f16[] = {0x3c00, 0x7c00, 0x7e00};
  EXPECT_EQ(NanTrace::At(base::DType::kF16, f16, 1).kind, NumberKind::kFinite);
  EXPECT_EQ(NanTrace::At(base::DType::kF16, f16, 2).kind,
            NumberKind::kInfinite);
  EXPECT_EQ(NanTrace::At(base::DType::kF16, f16, 3).kind, NumberKind::kNan);
  const uint16_t bf16[] = {0x3f80, 0x7f80, 0x7fc0};
  EXPECT_EQ(NanTrace::At(base::DType::kBF16, bf16, 2).kind,
            NumberKind::kInfinite);
  EXPECT_EQ(NanTrace::At(base::DType::kBF16, bf16, 3).kind, NumberKind::kNan);
  const int32_t whole[] = {0x7fc00000};
  EXPECT_EQ(NanTrace::At(base::DType::kI32, whole, 1).kind,
            NumberKind::kFinite);
}

}  // namespace
}  // namespace partita::executor
