// Breaks every rule about the attention of a launch once.
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "runtime/program/test_program.h"
#include "runtime/program/validate.h"

namespace partita::program {
namespace {

constexpr int64_t kBytes = 2 * 4 * 6 * 8 * 2;

// An attention of 4 heads, of which two share keys and values, on operands q,
// kv, out and lse.
AttentionT Sample() {
  AttentionT a;
  a.dtype = DType::bf16;
  a.batch = 2, a.heads = 4, a.groups = 2, a.queries = 6, a.keys = 6;
  a.size = a.value_size = 8;
  a.scale = 0.5;
  const AttentionTensor q(0, 0, 192, 8, 32), k(1, 0, 192, 8, 32),
      v(1, 16, 192, 8, 32), out(2, 0, 192, 48, 8);
  a.q = std::make_unique<AttentionTensor>(q);
  a.k = std::make_unique<AttentionTensor>(k);
  a.v = std::make_unique<AttentionTensor>(v);
  a.out = std::make_unique<AttentionTensor>(out);
  a.lse = 3;
  return a;
}

// The reason why a program with this launch is refused.
std::string After(
    const std::function<void(AttentionT&)>& change,
    const char* target = "cuda:sm_80",
    const std::function<void(LaunchT&)>& change_launch = [](LaunchT&) {}) {
  LaunchT launch;
  launch.grid = {1, 1, 1};
  launch.block = {128, 1, 1};
  launch.grain = 1;
  AttentionT attention = Sample();
  change(attention);
  launch.attention = std::make_unique<AttentionT>(attention);
  change_launch(launch);
  SampleProgram sample;
  sample.program.target = target;
  sample.program.kernels.push_back(MakeKernel("k"));
  FunctionT& main = *sample.program.functions[2];
  main.frame_bytes += 4096;
  main.body.push_back(MakeLaunch(launch,
                                 {Frame(0, kBytes), Frame(1024, kBytes),
                                  Frame(2048, kBytes), Frame(3072, 192)},
                                 2));
  const std::string bytes = SerializeProgram(sample.program);
  const std::string found(
      ValidateProgram(*GetProgram(bytes.data()), 128, /*has_code=*/true)
          .message());
  const std::string where =
      "function 'main', instruction 4: launch: its attention: ";
  return found.rfind(where, 0) == 0 ? found.substr(where.size()) : found;
}

void Change(std::unique_ptr<AttentionTensor>& tensor, int operand,
            int64_t offset, int64_t batch, int64_t head, int64_t position) {
  *tensor = AttentionTensor(operand, offset, batch, head, position);
}

TEST(ValidateAttentionTest, SizesAreInRange) {  // V7
  EXPECT_EQ(After([](AttentionT&) {}), "");
  EXPECT_EQ(After([](AttentionT& a) { a.lse = -1; }), "");
  EXPECT_EQ(After([](AttentionT& a) { a.queries = 0; }),
            "expected queries from 1 to 2147483648, found 0");
  EXPECT_EQ(After([](AttentionT& a) { a.keys = int64_t{1} << 40; }),
            "expected keys from 1 to 2147483648, found 1099511627776");
  EXPECT_EQ(After([](AttentionT& a) { a.groups = 3; }),
            "4 heads are no multiple of 3 heads of keys");
  EXPECT_EQ(After([](AttentionT& a) { a.dtype = DType::f32; }),
            "expected element type f16 or bf16, found 0");
  EXPECT_EQ(After([](AttentionT& a) { a.dtype = static_cast<DType>(99); }),
            "expected element type f16 or bf16, found 99");
  EXPECT_EQ(After([](AttentionT& a) {
              a.scale = std::numeric_limits<double>::quiet_NaN();
            }),
            "its scale is not finite");
  EXPECT_EQ(After([](AttentionT& a) {
              a.causal = true;
              a.causal_offset = 5;
            }),
            "");
  EXPECT_EQ(After([](AttentionT& a) {
              a.causal = true;
              a.causal_offset = 6;
            }),
            "expected a causal offset from 0 to 5, found 6");
  EXPECT_EQ(After([](AttentionT& a) { a.causal_offset = -1; }),
            "expected a causal offset from 0 to 0, found -1");
}

TEST(ValidateAttentionTest, TensorsAreInsideTheirOperands) {  // V7
  EXPECT_EQ(After([](AttentionT& a) { Change(a.q, 2, 0, 192, 8, 32); }),
            "expected q in the operands from 0 to 1, found 2");
  EXPECT_EQ(After([](AttentionT& a) { Change(a.v, -1, 0, 192, 8, 32); }),
            "expected v in the operands from 0 to 1, found -1");
  EXPECT_EQ(After([](AttentionT& a) { Change(a.out, 1, 0, 192, 48, 8); }),
            "expected out in the operands from 2 to 3, found 1");
  const std::string outside = " is not inside its operand of 768 bytes";
  EXPECT_EQ(After([](AttentionT& a) { Change(a.k, 1, 16, 192, 8, 32); }), "");
  EXPECT_EQ(After([](AttentionT& a) { Change(a.v, 1, 17, 192, 8, 32); }),
            "v" + outside);
  EXPECT_EQ(After([](AttentionT& a) { Change(a.q, 0, -1, 192, 8, 32); }),
            "q" + outside);
  EXPECT_EQ(After([](AttentionT& a) {
              Change(a.q, 0, std::numeric_limits<int64_t>::max(), 192, 8, 32);
            }),
            "q" + outside);
  EXPECT_EQ(After([](AttentionT& a) { Change(a.k, 1, 0, 192, -8, 32); }),
            "expected strides of k of at least 0, found -8");
  EXPECT_EQ(
      After([](AttentionT& a) { Change(a.k, 1, 0, int64_t{1} << 62, 8, 32); }),
      "k" + outside);
  // The stride of a single element does not matter.
  EXPECT_EQ(After([](AttentionT& a) {
              a.batch = 1;
              Change(a.k, 1, 0, int64_t{1} << 62, 8, 32);
            }),
            "");
  EXPECT_EQ(After([](AttentionT& a) { Change(a.out, 2, 0, 192, 8, 8); }),
            "elements of out overlap");
  // Heads may share queries, but not results.
  EXPECT_EQ(After([](AttentionT& a) { Change(a.q, 0, 0, 192, 0, 32); }), "");
}

TEST(ValidateAttentionTest, TheLogSumExpIsAnotherResult) {  // V7
  EXPECT_EQ(After([](AttentionT& a) { a.lse = 1; }),
            "expected lse in the operands from 2 to 3, found 1");
  EXPECT_EQ(After([](AttentionT& a) { a.lse = 2; }),
            "lse is in the operand of out");
  EXPECT_EQ(After([](AttentionT& a) {
              a.heads = 8;
              Change(a.q, 0, 0, 192, 0, 32);
              Change(a.out, 2, 0, 192, 24, 4);
              a.value_size = 4;
            }),
            "lse is not inside its operand of 192 bytes");
}

TEST(ValidateAttentionTest, OnlyGpusHaveOne) {  // V7
  EXPECT_EQ(After([](AttentionT&) {}, "cpu",
                  [](LaunchT& launch) {
                    launch.grid.clear();
                    launch.block.clear();
                  }),
            "function 'main', instruction 4: launch: an attention of several "
            "pieces or not on a GPU");
  EXPECT_EQ(After([](AttentionT&) {}, "cuda:sm_80",
                  [](LaunchT& launch) { launch.ranges = {0, 0}; }),
            "function 'main', instruction 4: launch: an attention of several "
            "pieces or not on a GPU");
}

}  // namespace
}  // namespace partita::program
