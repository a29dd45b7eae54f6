// Checks the properties that make GPU code fast: wide accesses next to each
// other, rows read once, no spills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/kernels/codegen_fixture.h"
#include "compiler/kernels/ptxas.h"

namespace partita::kernels {
namespace {

using testing::HasSubstr;
using testing::Not;

int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + 1))
    ++found;
  return found;
}

void expectNoSpills(const std::string& ptx) {
  if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
  Assembled assembled = assemble(ptx, "sm_90");
  EXPECT_TRUE(assembled.ok) << assembled.report;
  EXPECT_EQ(assembled.kernels.at("k").spilled_bytes, 0) << assembled.report;
  EXPECT_LE(assembled.kernels.at("k").registers, 64) << assembled.report;
}

TEST(PtxTest, MapsAccessSixteenBytesAtOnce) {
  PtxKernel launch;
  const std::string ptx = ptxOf(R"(
func.func @k(%a: tensor<64x1024xf32>, %b: tensor<1024xf32>) -> tensor<64x1024xf32> {
  %c = nn.broadcast %b dims = [1] : tensor<1024xf32> -> tensor<64x1024xf32>
  %s = arith.addf %a, %c : tensor<64x1024xf32>
  %r = math.tanh %s : tensor<64x1024xf32>
  return %r : tensor<64x1024xf32> })",
                                "sm_90", launch);
  EXPECT_EQ(count(ptx, "ld.global.v4") + count(ptx, "ld.global.nc.v4"), 2)
      << ptx;
  EXPECT_EQ(count(ptx, "st.global.v4"), 1) << ptx;
  EXPECT_EQ(launch.blocks, 64 * 1024 / (4 * kBlock));
  EXPECT_EQ(launch.scratch_bytes, 0);
  expectNoSpills(ptx);
}

TEST(PtxTest, SixteenBitNumbersAreReadEightAtOnce) {
  PtxKernel launch;
  const std::string ptx = ptxOf(R"(
func.func @k(%a: tensor<64x1024xbf16>, %b: tensor<1024xbf16>) -> tensor<64x1024xbf16> {
  %c = nn.broadcast %b dims = [1] : tensor<1024xbf16> -> tensor<64x1024xbf16>
  %r = arith.maximumf %a, %c : tensor<64x1024xbf16>
  return %r : tensor<64x1024xbf16> })",
                                "sm_90", launch);
  EXPECT_EQ(count(ptx, "ld.global.v4.b32") + count(ptx, "ld.global.nc.v4.b32"),
            2)
      << ptx;
  EXPECT_EQ(count(ptx, "st.global.v4.b32"), 1) << ptx;
  EXPECT_EQ(launch.blocks, 64 * 1024 / (8 * kBlock));
  expectNoSpills(ptx);
}

// A thread has eight reads in flight: four iterations of the loop become one,
// and LLVM doubles that.
TEST(PtxTest, ColumnsAreReadEightRowsAtATime) {
  PtxKernel launch;
  const std::string ptx = ptxOf(R"(
func.func @k(%a: tensor<16x512x384xf32>) -> tensor<16x384xf32> {
  %r = nn.reduce sum %a dims = [1] : tensor<16x512x384xf32> -> tensor<16x384xf32>
  return %r : tensor<16x384xf32> })",
                                "sm_90", launch);
  EXPECT_GE(count(ptx, "ld.global.nc.v4"), 4) << ptx;
  expectNoSpills(ptx);
}

TEST(PtxTest, RowsAreReducedByWarps) {
  PtxKernel launch;
  const std::string ptx = ptxOf(R"(
func.func @k(%a: tensor<96x512xf32>) -> tensor<96x512xf32> {
  %r = nn.softmax %a axis = 1 : tensor<96x512xf32>
  return %r : tensor<96x512xf32> })",
                                "sm_90", launch);
  // Two reductions of five exchanges. Exponentials are kept in shared memory,
  // so device memory is read twice, not three times.
  EXPECT_EQ(count(ptx, "shfl.sync.bfly"), 10) << ptx;
  EXPECT_EQ(count(ptx, "ld.global.v4") + count(ptx, "ld.global.nc.v4"), 2)
      << ptx;
  EXPECT_THAT(ptx, HasSubstr("ld.shared.v4"));
  EXPECT_EQ(launch.blocks, 96 / 4);
  EXPECT_EQ(launch.scratch_bytes, 0);
  expectNoSpills(ptx);
}

TEST(PtxTest, WhatOneThreadComputesHasScratchInMemory) {
  PtxKernel launch;
  const std::string ptx = ptxOf(
      "func.func @k(%q: tensor<1x2x20x24xf32>, %k: tensor<1x2x20x24xf32>, %v: "
      "tensor<1x2x20x24xf32>) -> tensor<1x2x20x24xf32> { %r = nn.attention %q, "
      "%k, %v scale = 2.0e-1 : (tensor<1x2x20x24xf32>, tensor<1x2x20x24xf32>, "
      "tensor<1x2x20x24xf32>) -> tensor<1x2x20x24xf32> return %r : "
      "tensor<1x2x20x24xf32> }",
      "sm_80", launch);
  EXPECT_GT(launch.scratch_bytes, 0);
  EXPECT_THAT(ptx, HasSubstr("k_param_4"));  // three inputs, a result, scratch
  EXPECT_THAT(ptx, Not(HasSubstr("k_param_5")));
}

TEST(PtxTest, TheBestOfRowsAreFoundByWarps) {
  PtxKernel launch;
  const std::string ptx = ptxOf(R"(
func.func @k(%a: tensor<64x50257xf32>) -> (tensor<64x50xf32>, tensor<64x50xi64>) {
  %v, %i = nn.top_k %a largest = true : tensor<64x50257xf32> -> tensor<64x50xf32>, tensor<64x50xi64>
  return %v, %i : tensor<64x50xf32>, tensor<64x50xi64> })",
                                "sm_90", launch);
  // Two tournaments, of values and of places, in five rounds.
  EXPECT_EQ(count(ptx, "shfl.sync.bfly"), 20) << ptx;
  EXPECT_EQ(launch.blocks, 64 / 4);
  EXPECT_EQ(launch.scratch_bytes, 0);
  expectNoSpills(ptx);
}

TEST(PtxTest, FunctionsThatNeedALibraryAreRefused) {
  PtxKernel launch;
  testing::internal::CaptureStderr();
  EXPECT_EQ(ptxOf("func.func @k(%a: tensor<70xf64>) -> tensor<70xf64> { %r = "
                  "math.exp %a : tensor<70xf64> return %r : tensor<70xf64> }",
                  "sm_90", launch),
            "");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("expected a function that this target has instructions "
                        "for, found one of 'vector<4xf64>'"));
}

}  // namespace
}  // namespace partita::kernels
