// Compares kernels of every kind with the interpreter, at odd sizes, run whole
// and in parts.
#include <gtest/gtest.h>

#include "compiler/kernels/codegen_fixture.h"
#include "compiler/kernels/ptxas.h"

namespace partita::kernels {
namespace {

struct Case {
  std::string name;
  std::string text;
  double relative = 2e-5;
  double scale = 1;      // of random floats
  bool for_gpus = true;  // false: it needs a function that only libm has
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class Codegen : public testing::TestWithParam<Case> {};

TEST_P(Codegen, EqualsTheInterpreter) {
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(GetParam().text);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->difference(GetParam().relative, GetParam().relative,
                               GetParam().scale),
            "");
}

// A warp computes each item of the range, like on a GPU.
TEST_P(Codegen, EqualsTheInterpreterInTeams) {
  CodegenOptions options;
  options.vector_bytes = 16;
  options.team = 32;
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(GetParam().text, options);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->difference(GetParam().relative, GetParam().relative,
                               GetParam().scale),
            "");
}

TEST_P(Codegen, AssemblesForGpus) {
  if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
  for (const char* chip : {"sm_80", "sm_90"}) {
    PtxKernel launch;
    std::string ptx = ptxOf(GetParam().text, chip, launch);
    ASSERT_EQ(ptx != "", GetParam().for_gpus);
    if (ptx.empty()) continue;
    Assembled assembled = assemble(ptx, chip);
    EXPECT_TRUE(assembled.ok) << assembled.report << ptx;
    EXPECT_GE(launch.blocks, 1);
  }
}

// The reductions of rows are seen behind padding, so each row is an item.
TEST(CodegenPadding, KeepsRowsApart) {
  const std::string text = R"(
    func.func @k(%x: tensor<64x201xf32>) -> tensor<64x256xf32> {
      %p = nn.softmax %x axis = 1 : tensor<64x201xf32>
      %0 = arith.constant dense<0.0> : tensor<f32>
      %r = nn.pad %p, %0 low = [0, 0] high = [0, 55] : tensor<64x201xf32>, tensor<f32> -> tensor<64x256xf32>
      return %r : tensor<64x256xf32>
    })";
  CodegenOptions teams;
  teams.vector_bytes = 16;
  teams.team = 32;
  for (const CodegenOptions& options : {teams, hostCodegenOptions()}) {
    auto kernel = CompiledKernel::fromText(text, options);
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ(kernel->code().range, 64);
    EXPECT_EQ(kernel->difference(1e-6, 1e-5), "");
  }
}

std::string nameOf(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

// clang-format off
const Case kMaps[] = {
  {"add_scalar", "func.func @k(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> { %r = arith.addf %a, %b : tensor<f32> return %r : tensor<f32> }"},
  {"add_1", "func.func @k(%a: tensor<1xf32>, %b: tensor<1xf32>) -> tensor<1xf32> { %r = arith.addf %a, %b : tensor<1xf32> return %r : tensor<1xf32> }"},
  {"add_17", "func.func @k(%a: tensor<17xf32>, %b: tensor<17xf32>) -> tensor<17xf32> { %r = arith.addf %a, %b : tensor<17xf32> return %r : tensor<17xf32> }"},
  {"mul_3x63", "func.func @k(%a: tensor<3x63xf32>, %b: tensor<3x63xf32>) -> tensor<3x63xf32> { %r = arith.mulf %a, %b : tensor<3x63xf32> return %r : tensor<3x63xf32> }"},
  {"add_10000", "func.func @k(%a: tensor<10000xf32>, %b: tensor<10000xf32>) -> tensor<10000xf32> { %r = arith.addf %a, %b : tensor<10000xf32> return %r : tensor<10000xf32> }"},
  {"bias_last", R"(func.func @k(%a: tensor<5x33xf32>, %b: tensor<33xf32>) -> tensor<5x33xf32> {
     %c = nn.broadcast %b dims = [1] : tensor<33xf32> -> tensor<5x33xf32>
     %r = arith.addf %a, %c : tensor<5x33xf32> return %r : tensor<5x33xf32> })"},
  {"bias_channel", R"(func.func @k(%a: tensor<2x3x7x9xf32>, %b: tensor<3xf32>) -> tensor<2x3x7x9xf32> {
     %c = nn.broadcast %b dims = [1] : tensor<3xf32> -> tensor<2x3x7x9xf32>
     %r = arith.addf %a, %c : tensor<2x3x7x9xf32> return %r : tensor<2x3x7x9xf32> })"},
  {"bias_short_rows", R"(func.func @k(%a: tensor<40x3xf32>, %b: tensor<3xf32>) -> tensor<40x3xf32> {
     %c = nn.broadcast %b dims = [1] : tensor<3xf32> -> tensor<40x3xf32>
     %r = arith.addf %a, %c : tensor<40x3xf32> return %r : tensor<40x3xf32> })"},
  {"transpose", "func.func @k(%a: tensor<17x5xf32>) -> tensor<5x17xf32> { %r = nn.transpose %a perm = [1, 0] : tensor<17x5xf32> -> tensor<5x17xf32> return %r : tensor<5x17xf32> }"},
  {"split_heads", R"(func.func @k(%a: tensor<2x5x48xf32>) -> tensor<2x3x5x16xf32> {
     %s = nn.reshape %a : tensor<2x5x48xf32> -> tensor<2x5x3x16xf32>
     %r = nn.transpose %s perm = [0, 2, 1, 3] : tensor<2x5x3x16xf32> -> tensor<2x3x5x16xf32> return %r : tensor<2x3x5x16xf32> })"},
  {"merge_heads", R"(func.func @k(%a: tensor<2x3x5x16xf32>) -> tensor<2x5x48xf32> {
     %s = nn.transpose %a perm = [0, 2, 1, 3] : tensor<2x3x5x16xf32> -> tensor<2x5x3x16xf32>
     %r = nn.reshape %s : tensor<2x5x3x16xf32> -> tensor<2x5x48xf32> return %r : tensor<2x5x48xf32> })"},
  {"odd_reshape", R"(func.func @k(%a: tensor<6x35xf32>, %b: tensor<10x21xf32>) -> tensor<10x21xf32> {
     %t = nn.transpose %a perm = [1, 0] : tensor<6x35xf32> -> tensor<35x6xf32>
     %s = nn.reshape %t : tensor<35x6xf32> -> tensor<10x21xf32>
     %r = arith.subf %s, %b : tensor<10x21xf32> return %r : tensor<10x21xf32> })"},
  {"slice_strided", R"(func.func @k(%a: tensor<9x40xf32>) -> tensor<4x18xf32> {
     %r = nn.slice %a starts = [1, 39] strides = [2, -2] : tensor<9x40xf32> -> tensor<4x18xf32> return %r : tensor<4x18xf32> })"},
  {"slice_reverse_reshape", R"(func.func @k(%a: tensor<9x40xf32>) -> tensor<6x60xf32> {
     %s = nn.slice %a starts = [8, 39] strides = [-1, -1] : tensor<9x40xf32> -> tensor<9x40xf32>
     %r = nn.reshape %s : tensor<9x40xf32> -> tensor<6x60xf32> return %r : tensor<6x60xf32> })"},
  {"pad_constant", R"(func.func @k(%a: tensor<3x21xf32>, %v: tensor<f32>) -> tensor<6x40xf32> {
     %r = nn.pad %a, %v low = [1, 5] high = [2, 14] : tensor<3x21xf32>, tensor<f32> -> tensor<6x40xf32> return %r : tensor<6x40xf32> })"},
  {"pad_edge", R"(func.func @k(%a: tensor<3x21xf32>, %v: tensor<f32>) -> tensor<6x40xf32> {
     %r = nn.pad %a, %v low = [1, 5] high = [2, 14] mode = edge : tensor<3x21xf32>, tensor<f32> -> tensor<6x40xf32> return %r : tensor<6x40xf32> })"},
  {"pad_reflect", R"(func.func @k(%a: tensor<3x21xf32>, %v: tensor<f32>) -> tensor<6x40xf32> {
     %r = nn.pad %a, %v low = [1, 5] high = [2, 14] mode = reflect : tensor<3x21xf32>, tensor<f32> -> tensor<6x40xf32> return %r : tensor<6x40xf32> })"},
  {"pad_wrap", R"(func.func @k(%a: tensor<3x21xf32>, %v: tensor<f32>) -> tensor<6x70xf32> {
     %r = nn.pad %a, %v low = [1, 25] high = [2, 24] mode = wrap : tensor<3x21xf32>, tensor<f32> -> tensor<6x70xf32> return %r : tensor<6x70xf32> })"},
  {"pad_reshape_add", R"(func.func @k(%a: tensor<3x20xf32>, %v: tensor<f32>, %b: tensor<100xf32>) -> tensor<100xf32> {
     %p = nn.pad %a, %v low = [1, 0] high = [1, 0] : tensor<3x20xf32>, tensor<f32> -> tensor<5x20xf32>
     %s = nn.reshape %p : tensor<5x20xf32> -> tensor<100xf32>
     %r = arith.addf %s, %b : tensor<100xf32> return %r : tensor<100xf32> })"},
  {"concat_last", R"(func.func @k(%a: tensor<3x5xf32>, %b: tensor<3x20xf32>, %c: tensor<3x1xf32>) -> tensor<3x26xf32> {
     %r = nn.concat %a, %b, %c axis = 1 : (tensor<3x5xf32>, tensor<3x20xf32>, tensor<3x1xf32>) -> tensor<3x26xf32> return %r : tensor<3x26xf32> })"},
  {"concat_parts", R"(func.func @k(%a: tensor<3x130xf32>, %b: tensor<3x64xf32>, %c: tensor<3x1xf32>, %d: tensor<3x5x40xf32>, %e: tensor<3x0xf32>) -> tensor<9x145xf32> {
     %x = math.exp %a : tensor<3x130xf32>
     %y = nn.reshape %d : tensor<3x5x40xf32> -> tensor<3x200xf32>
     %s = nn.concat %b, %c axis = 1 : (tensor<3x64xf32>, tensor<3x1xf32>) -> tensor<3x65xf32>
     %z = nn.slice %s starts = [0, 25] strides = [1, 1] : tensor<3x65xf32> -> tensor<3x40xf32>
     %r = nn.concat %x, %b, %e, %y, %c, %z axis = 1 : (tensor<3x130xf32>, tensor<3x64xf32>, tensor<3x0xf32>, tensor<3x200xf32>, tensor<3x1xf32>, tensor<3x40xf32>) -> tensor<3x435xf32>
     %q = nn.reshape %r : tensor<3x435xf32> -> tensor<9x145xf32> return %q : tensor<9x145xf32> })"},
  {"concat_flat_parts", R"(func.func @k(%a: tensor<7x300xbf16>, %b: tensor<11xbf16>, %c: tensor<4099xbf16>) -> tensor<6210xbf16> {
     %x = nn.reshape %a : tensor<7x300xbf16> -> tensor<2100xbf16>
     %r = nn.concat %x, %b, %c axis = 0 : (tensor<2100xbf16>, tensor<11xbf16>, tensor<4099xbf16>) -> tensor<6210xbf16> return %r : tensor<6210xbf16> })"},
  {"concat_first", R"(func.func @k(%a: tensor<3x50xf32>, %b: tensor<2x50xf32>) -> tensor<5x50xf32> {
     %r = nn.concat %a, %b axis = 0 : (tensor<3x50xf32>, tensor<2x50xf32>) -> tensor<5x50xf32> return %r : tensor<5x50xf32> })"},
  {"rotate_half", R"(func.func @k(%x: tensor<2x7x32xf32>, %cos: tensor<7x32xf32>, %sin: tensor<7x32xf32>) -> tensor<2x7x32xf32> {
     %l = nn.slice %x starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x7x32xf32> -> tensor<2x7x16xf32>
     %h = nn.slice %x starts = [0, 0, 16] strides = [1, 1, 1] : tensor<2x7x32xf32> -> tensor<2x7x16xf32>
     %n = arith.negf %h : tensor<2x7x16xf32>
     %rot = nn.concat %n, %l axis = 2 : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x32xf32>
     %c = nn.broadcast %cos dims = [1, 2] : tensor<7x32xf32> -> tensor<2x7x32xf32>
     %s = nn.broadcast %sin dims = [1, 2] : tensor<7x32xf32> -> tensor<2x7x32xf32>
     %p = arith.mulf %x, %c : tensor<2x7x32xf32>
     %q = arith.mulf %rot, %s : tensor<2x7x32xf32>
     %r = arith.addf %p, %q : tensor<2x7x32xf32> return %r : tensor<2x7x32xf32> })"},
  {"embedding", R"(func.func @k(%t: tensor<10x40xf32>, %i: tensor<2x3x1xi64>, %p: tensor<3x40xf32>) -> tensor<2x3x40xf32> {
     %e = nn.gather %t[%i] axes = [0] : tensor<10x40xf32>, tensor<2x3x1xi64> -> tensor<2x3x40xf32>
     %b = nn.broadcast %p dims = [1, 2] : tensor<3x40xf32> -> tensor<2x3x40xf32>
     %r = arith.addf %e, %b : tensor<2x3x40xf32> return %r : tensor<2x3x40xf32> })"},
  {"gather_clamped", R"(func.func @k(%t: tensor<4x5xf32>, %i: tensor<37x2xi32>) -> tensor<37xf32> {
     %r = nn.gather %t[%i] axes = [1, 0] : tensor<4x5xf32>, tensor<37x2xi32> -> tensor<37xf32> return %r : tensor<37xf32> })"},
  {"gather_batched", R"(func.func @k(%t: tensor<3x8x6xf32>, %i: tensor<3x4x1xi8>) -> tensor<3x4x6xf32> {
     %r = nn.gather %t[%i] axes = [1] batch_dims = 1 : tensor<3x8x6xf32>, tensor<3x4x1xi8> -> tensor<3x4x6xf32> return %r : tensor<3x4x6xf32> })"},
  {"iota_compare", R"(func.func @k(%a: tensor<5x19xf32>, %z: tensor<f32>) -> tensor<5x19xf32> {
     %i = nn.iota dim = 0 : tensor<5x19xi32>
     %j = nn.iota dim = 1 : tensor<5x19xi32>
     %c = arith.cmpi sge, %i, %j : tensor<5x19xi32>
     %b = nn.broadcast %z dims = [] : tensor<f32> -> tensor<5x19xf32>
     %r = arith.select %c, %a, %b : tensor<5x19xi1>, tensor<5x19xf32> return %r : tensor<5x19xf32> })"},
  {"iota_float", "func.func @k() -> tensor<37xf32> { %r = nn.iota dim = 0 : tensor<37xf32> return %r : tensor<37xf32> }"},
  {"constants", R"(func.func @k(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
     %c = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
     %d = arith.constant dense<0.5> : tensor<2x3xf32>
     %m = arith.mulf %a, %c : tensor<2x3xf32>
     %r = arith.addf %m, %d : tensor<2x3xf32> return %r : tensor<2x3xf32> })"},
  {"truth_values", R"(func.func @k(%a: tensor<37xi1>, %b: tensor<37xi1>, %x: tensor<37xf32>) -> (tensor<37xi1>, tensor<37xf32>) {
     %c = arith.xori %a, %b : tensor<37xi1>
     %z = arith.constant dense<0.0> : tensor<37xf32>
     %r = arith.select %c, %x, %z : tensor<37xi1>, tensor<37xf32>
     return %c, %r : tensor<37xi1>, tensor<37xf32> })"},
  {"two_shapes", R"(func.func @k(%a: tensor<50x7xf32>, %b: tensor<9xf32>) -> (tensor<50x7xf32>, tensor<9xf32>, tensor<7x50xf32>) {
     %r = arith.addf %a, %a : tensor<50x7xf32>
     %s = arith.mulf %b, %b : tensor<9xf32>
     %t = nn.transpose %r perm = [1, 0] : tensor<50x7xf32> -> tensor<7x50xf32>
     return %r, %s, %t : tensor<50x7xf32>, tensor<9xf32>, tensor<7x50xf32> })"},
  {"integers", R"(func.func @k(%a: tensor<37xi32>, %b: tensor<37xi32>) -> tensor<37xi32> {
     %one = arith.constant dense<1> : tensor<37xi32>
     %d = arith.addi %b, %one : tensor<37xi32>
     %q = arith.divsi %a, %d : tensor<37xi32>
     %m = arith.remsi %a, %d : tensor<37xi32>
     %p = arith.muli %q, %d : tensor<37xi32>
     %r = arith.addi %p, %m : tensor<37xi32> return %r : tensor<37xi32> })"},
  {"bytes", R"(func.func @k(%a: tensor<3x70xi8>, %b: tensor<3x70xi8>) -> tensor<3x70xi64> {
     %s = arith.maxsi %a, %b : tensor<3x70xi8>
     %r = arith.extsi %s : tensor<3x70xi8> to tensor<3x70xi64> return %r : tensor<3x70xi64> })"},
  {"bf16", R"(func.func @k(%a: tensor<3x70xbf16>, %b: tensor<3x70xbf16>) -> tensor<3x70xbf16> {
     %r = arith.mulf %a, %b : tensor<3x70xbf16> return %r : tensor<3x70xbf16> })", 1e-2},
  {"f16", R"(func.func @k(%a: tensor<3x70xf16>, %b: tensor<3x70xf16>) -> tensor<3x70xf16> {
     %r = arith.addf %a, %b : tensor<3x70xf16> return %r : tensor<3x70xf16> })", 2e-3},
  {"f64", R"(func.func @k(%a: tensor<3x70xf64>, %b: tensor<3x70xf64>) -> tensor<3x70xf64> {
     %s = math.exp %a : tensor<3x70xf64>
     %r = arith.divf %s, %b : tensor<3x70xf64> return %r : tensor<3x70xf64> })", 1e-12, 1, /*for_gpus=*/false},
  {"casts", R"(func.func @k(%a: tensor<70xf32>) -> (tensor<70xbf16>, tensor<70xf64>, tensor<70xi32>, tensor<70xi32>) {
     %b = arith.truncf %a : tensor<70xf32> to tensor<70xbf16>
     %d = arith.extf %b : tensor<70xbf16> to tensor<70xf64>
     %i = arith.fptosi %a : tensor<70xf32> to tensor<70xi32>
     %j = arith.bitcast %a : tensor<70xf32> to tensor<70xi32>
     return %b, %d, %i, %j : tensor<70xbf16>, tensor<70xf64>, tensor<70xi32>, tensor<70xi32> })"},
  {"gelu", R"(func.func @k(%x: tensor<5x77xf32>) -> tensor<5x77xf32> {
     %h = arith.constant dense<0.5> : tensor<5x77xf32>
     %o = arith.constant dense<1.0> : tensor<5x77xf32>
     %s = arith.constant dense<0.70710678> : tensor<5x77xf32>
     %m = arith.mulf %x, %s : tensor<5x77xf32>
     %e = math.erf %m : tensor<5x77xf32>
     %p = arith.addf %e, %o : tensor<5x77xf32>
     %q = arith.mulf %p, %x : tensor<5x77xf32>
     %r = arith.mulf %q, %h : tensor<5x77xf32> return %r : tensor<5x77xf32> })"},
  {"powers", R"(func.func @k(%x: tensor<37xf32>, %y: tensor<37xf32>) -> (tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>) {
     %c = arith.constant dense<3.0> : tensor<f32>
     %three = nn.broadcast %c dims = [] : tensor<f32> -> tensor<37xf32>
     %half = arith.constant dense<0.5> : tensor<37xf32>
     %third = arith.constant dense<0.3> : tensor<37xf32>
     %a = math.powf %x, %three : tensor<37xf32>
     %s = arith.mulf %x, %x : tensor<37xf32>
     %b = math.powf %s, %half : tensor<37xf32>
     %d = math.powf %s, %third : tensor<37xf32>
     %e = math.powf %x, %y : tensor<37xf32>
     return %a, %b, %d, %e : tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32> })"},
};
INSTANTIATE_TEST_SUITE_P(Maps, Codegen, testing::ValuesIn(kMaps), nameOf);

const Case kReductions[] = {
  {"sum_last", "func.func @k(%a: tensor<5x100xf32>) -> tensor<5xf32> { %r = nn.reduce sum %a dims = [1] : tensor<5x100xf32> -> tensor<5xf32> return %r : tensor<5xf32> }"},
  {"sum_first", "func.func @k(%a: tensor<50x70xf32>) -> tensor<70xf32> { %r = nn.reduce sum %a dims = [0] : tensor<50x70xf32> -> tensor<70xf32> return %r : tensor<70xf32> }"},
  {"sum_all", "func.func @k(%a: tensor<5x70xf32>) -> tensor<f32> { %r = nn.reduce sum %a dims = [0, 1] : tensor<5x70xf32> -> tensor<f32> return %r : tensor<f32> }"},
  {"sum_short", "func.func @k(%a: tensor<100x3xf32>) -> tensor<100xf32> { %r = nn.reduce sum %a dims = [1] : tensor<100x3xf32> -> tensor<100xf32> return %r : tensor<100xf32> }"},
  {"max_middle", "func.func @k(%a: tensor<3x17x20xf32>) -> tensor<3x20xf32> { %r = nn.reduce max %a dims = [1] : tensor<3x17x20xf32> -> tensor<3x20xf32> return %r : tensor<3x20xf32> }"},
  {"min_outer_two", "func.func @k(%a: tensor<3x17x20xf32>) -> tensor<17xf32> { %r = nn.reduce min %a dims = [0, 2] : tensor<3x17x20xf32> -> tensor<17xf32> return %r : tensor<17xf32> }"},
  {"prod_i32", "func.func @k(%a: tensor<6x17xi32>) -> tensor<6xi32> { %r = nn.reduce prod %a dims = [1] : tensor<6x17xi32> -> tensor<6xi32> return %r : tensor<6xi32> }"},
  {"max_i64", "func.func @k(%a: tensor<6x37xi64>) -> tensor<6xi64> { %r = nn.reduce max %a dims = [1] : tensor<6x37xi64> -> tensor<6xi64> return %r : tensor<6xi64> }"},
  {"any_all", R"(func.func @k(%a: tensor<6x5xi1>) -> (tensor<6xi1>, tensor<5xi1>) {
     %r = nn.reduce max %a dims = [1] : tensor<6x5xi1> -> tensor<6xi1>
     %s = nn.reduce min %a dims = [0] : tensor<6x5xi1> -> tensor<5xi1> return %r, %s : tensor<6xi1>, tensor<5xi1> })"},
  // 16 bytes of each operand are eight elements if rows fill a warp with them.
  {"wide_map_bf16", R"(func.func @k(%a: tensor<4x512xbf16>, %b: tensor<512xbf16>) -> tensor<4x512xbf16> {
     %c = nn.broadcast %b dims = [1] : tensor<512xbf16> -> tensor<4x512xbf16>
     %r = arith.mulf %a, %c : tensor<4x512xbf16> return %r : tensor<4x512xbf16> })", 1e-2},
  {"wide_slice_bf16", R"(func.func @k(%a: tensor<3x1024xbf16>) -> tensor<3x768xbf16> {
     %r = nn.slice %a starts = [0, 129] strides = [1, 1] : tensor<3x1024xbf16> -> tensor<3x768xbf16> return %r : tensor<3x768xbf16> })", 1e-2},
  {"wide_select_bf16", R"(func.func @k(%m: tensor<2x256xi1>, %a: tensor<2x256xbf16>, %b: tensor<2x256xbf16>) -> tensor<2x256xbf16> {
     %r = arith.select %m, %a, %b : tensor<2x256xi1>, tensor<2x256xbf16> return %r : tensor<2x256xbf16> })", 1e-2},
  {"wide_sum_bf16", "func.func @k(%a: tensor<256x1024xbf16>) -> tensor<256xbf16> { %r = nn.reduce sum %a dims = [1] : tensor<256x1024xbf16> -> tensor<256xbf16> return %r : tensor<256xbf16> }", 1e-2},
  {"wide_columns_bf16", "func.func @k(%a: tensor<40x512xbf16>) -> tensor<512xbf16> { %r = nn.reduce sum %a dims = [0] : tensor<40x512xbf16> -> tensor<512xbf16> return %r : tensor<512xbf16> }", 1e-2},
  {"wide_softmax_bf16", "func.func @k(%a: tensor<3x1024xbf16>) -> tensor<3x1024xbf16> { %r = nn.softmax %a axis = 1 : tensor<3x1024xbf16> return %r : tensor<3x1024xbf16> }", 1e-2},
  {"wide_layer_norm_bf16", "func.func @k(%a: tensor<5x768xbf16>, %g: tensor<768xbf16>) -> tensor<5x768xbf16> { %r = nn.layer_norm %a scale(%g : tensor<768xbf16>) axis = 1 epsilon = 1.0e-5 : tensor<5x768xbf16> return %r : tensor<5x768xbf16> }", 2e-2},
  {"columns_of_many_rows", "func.func @k(%a: tensor<3x41x130xf32>) -> tensor<3x130xf32> { %r = nn.reduce sum %a dims = [1] : tensor<3x41x130xf32> -> tensor<3x130xf32> return %r : tensor<3x130xf32> }"},
  {"sum_bf16", "func.func @k(%a: tensor<4x500xbf16>) -> tensor<4xbf16> { %r = nn.reduce sum %a dims = [1] : tensor<4x500xbf16> -> tensor<4xbf16> return %r : tensor<4xbf16> }", 1e-2},
  {"sum_f64", "func.func @k(%a: tensor<4x500xf64>) -> tensor<4xf64> { %r = nn.reduce sum %a dims = [1] : tensor<4x500xf64> -> tensor<4xf64> return %r : tensor<4xf64> }", 1e-12},
  {"mean_of_squares_then_sqrt", R"(func.func @k(%a: tensor<9x200xf32>) -> tensor<9xf32> {
     %s = arith.mulf %a, %a : tensor<9x200xf32>
     %t = nn.reduce sum %s dims = [1] : tensor<9x200xf32> -> tensor<9xf32>
     %r = math.sqrt %t : tensor<9xf32> return %r : tensor<9xf32> })"},
  {"global_average_pool", "func.func @k(%a: tensor<2x20x7x7xf32>) -> tensor<2x20xf32> { %r = nn.reduce sum %a dims = [2, 3] : tensor<2x20x7x7xf32> -> tensor<2x20xf32> return %r : tensor<2x20xf32> }"},
  {"sum_transposed", R"(func.func @k(%a: tensor<37x20xf32>) -> tensor<20xf32> {
     %t = nn.transpose %a perm = [1, 0] : tensor<37x20xf32> -> tensor<20x37xf32>
     %r = nn.reduce sum %t dims = [1] : tensor<20x37xf32> -> tensor<20xf32> return %r : tensor<20xf32> })"},
  {"empty_sum", "func.func @k(%a: tensor<4x0xf32>) -> tensor<4xf32> { %r = nn.reduce sum %a dims = [1] : tensor<4x0xf32> -> tensor<4xf32> return %r : tensor<4xf32> }"},
  {"max_pool", "func.func @k(%a: tensor<2x3x9x9xf32>) -> tensor<2x3x5x5xf32> { %r = nn.reduce_window max %a window = [1, 1, 3, 3] strides = [1, 1, 2, 2] dilations = [1, 1, 1, 1] low = [0, 0, 1, 1] high = [0, 0, 1, 1] : tensor<2x3x9x9xf32> -> tensor<2x3x5x5xf32> return %r : tensor<2x3x5x5xf32> }"},
  {"running_sum", "func.func @k(%a: tensor<3x40xf32>) -> tensor<3x40xf32> { %r = nn.reduce_window sum %a window = [1, 40] strides = [1, 1] dilations = [1, 1] low = [0, 39] high = [0, 0] : tensor<3x40xf32> -> tensor<3x40xf32> return %r : tensor<3x40xf32> }"},
  {"dot", "func.func @k(%a: tensor<5x37xf32>, %b: tensor<37x70xf32>) -> tensor<5x70xf32> { %r = nn.dot_general %a, %b contract = [1] x [0] : tensor<5x37xf32>, tensor<37x70xf32> -> tensor<5x70xf32> return %r : tensor<5x70xf32> }"},
  {"dot_transposed", "func.func @k(%a: tensor<5x37xf32>, %b: tensor<70x37xf32>) -> tensor<5x70xf32> { %r = nn.dot_general %a, %b contract = [1] x [1] : tensor<5x37xf32>, tensor<70x37xf32> -> tensor<5x70xf32> return %r : tensor<5x70xf32> }"},
  {"dot_batched", "func.func @k(%a: tensor<3x5x20xf32>, %b: tensor<3x7x20xf32>) -> tensor<3x5x7xf32> { %r = nn.dot_general %a, %b batch = [0] x [0] contract = [2] x [2] : tensor<3x5x20xf32>, tensor<3x7x20xf32> -> tensor<3x5x7xf32> return %r : tensor<3x5x7xf32> }"},
  {"dot_i32", "func.func @k(%a: tensor<5x37xi32>, %b: tensor<37x20xi32>) -> tensor<5x20xi32> { %r = nn.dot_general %a, %b contract = [1] x [0] : tensor<5x37xi32>, tensor<37x20xi32> -> tensor<5x20xi32> return %r : tensor<5x20xi32> }"},
  {"dot_f64", "func.func @k(%a: tensor<5x37xf64>, %b: tensor<37x20xf64>) -> tensor<5x20xf64> { %r = nn.dot_general %a, %b contract = [1] x [0] : tensor<5x37xf64>, tensor<37x20xf64> -> tensor<5x20xf64> return %r : tensor<5x20xf64> }", 1e-12},
  {"conv", "func.func @k(%a: tensor<2x3x9x9xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<2x4x5x5xf32> { %r = nn.conv %a, %w strides = [2, 2] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<2x3x9x9xf32>, tensor<4x3x3x3xf32> -> tensor<2x4x5x5xf32> return %r : tensor<2x4x5x5xf32> }"},
  {"conv_depthwise_channels_last", "func.func @k(%a: tensor<2x9x9x20xf32>, %w: tensor<20x1x3x3xf32>) -> tensor<2x9x9x20xf32> { %r = nn.conv %a, %w strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 20 channels_last : tensor<2x9x9x20xf32>, tensor<20x1x3x3xf32> -> tensor<2x9x9x20xf32> return %r : tensor<2x9x9x20xf32> }"},
  {"conv_1d_grouped", "func.func @k(%a: tensor<2x6x30xf32>, %w: tensor<4x3x5xf32>) -> tensor<2x4x22xf32> { %r = nn.conv %a, %w strides = [1] dilations = [2] low = [0] high = [0] groups = 2 : tensor<2x6x30xf32>, tensor<4x3x5xf32> -> tensor<2x4x22xf32> return %r : tensor<2x4x22xf32> }"},
};
INSTANTIATE_TEST_SUITE_P(Reductions, Codegen, testing::ValuesIn(kReductions), nameOf);

const Case kRows[] = {
  {"softmax", "func.func @k(%a: tensor<7x100xf32>) -> tensor<7x100xf32> { %r = nn.softmax %a axis = 1 : tensor<7x100xf32> return %r : tensor<7x100xf32> }"},
  {"softmax_short", "func.func @k(%a: tensor<7x3xf32>) -> tensor<7x3xf32> { %r = nn.softmax %a axis = 1 : tensor<7x3xf32> return %r : tensor<7x3xf32> }"},
  {"softmax_middle", "func.func @k(%a: tensor<2x9x21xf32>) -> tensor<2x9x21xf32> { %r = nn.softmax %a axis = 1 : tensor<2x9x21xf32> return %r : tensor<2x9x21xf32> }"},
  {"softmax_first", "func.func @k(%a: tensor<9x40xf32>) -> tensor<9x40xf32> { %r = nn.softmax %a axis = 0 : tensor<9x40xf32> return %r : tensor<9x40xf32> }"},
  {"log_softmax", "func.func @k(%a: tensor<7x65xf32>) -> tensor<7x65xf32> { %r = nn.softmax log %a axis = 1 : tensor<7x65xf32> return %r : tensor<7x65xf32> }"},
  {"masked_scaled_softmax", R"(func.func @k(%a: tensor<4x6x33xf32>, %m: tensor<6x33xf32>) -> tensor<4x6x33xf32> {
     %s = arith.constant dense<0.125> : tensor<4x6x33xf32>
     %x = arith.mulf %a, %s : tensor<4x6x33xf32>
     %b = nn.broadcast %m dims = [1, 2] : tensor<6x33xf32> -> tensor<4x6x33xf32>
     %y = arith.addf %x, %b : tensor<4x6x33xf32>
     %r = nn.softmax %y axis = 2 : tensor<4x6x33xf32> return %r : tensor<4x6x33xf32> })"},
  {"layer_norm", "func.func @k(%a: tensor<5x96xf32>, %g: tensor<96xf32>, %b: tensor<96xf32>) -> tensor<5x96xf32> { %r = nn.layer_norm %a scale(%g : tensor<96xf32>) bias(%b : tensor<96xf32>) axis = 1 epsilon = 1.0e-5 : tensor<5x96xf32> return %r : tensor<5x96xf32> }"},
  {"layer_norm_two_dims", "func.func @k(%a: tensor<5x6x7xf32>) -> tensor<5x6x7xf32> { %r = nn.layer_norm %a axis = 1 epsilon = 1.0e-5 : tensor<5x6x7xf32> return %r : tensor<5x6x7xf32> }"},
  {"layer_norm_bf16", "func.func @k(%a: tensor<5x96xbf16>, %g: tensor<96xbf16>) -> tensor<5x96xbf16> { %r = nn.layer_norm %a scale(%g : tensor<96xbf16>) axis = 1 epsilon = 1.0e-5 : tensor<5x96xbf16> return %r : tensor<5x96xbf16> }", 2e-2},
  {"residual_layer_norm", R"(func.func @k(%x: tensor<5x97xf32>, %y: tensor<5x97xf32>, %c: tensor<97xf32>, %g: tensor<97xf32>, %b: tensor<97xf32>) -> (tensor<5x97xf32>, tensor<5x97xf32>) {
     %cb = nn.broadcast %c dims = [1] : tensor<97xf32> -> tensor<5x97xf32>
     %t = arith.addf %y, %cb : tensor<5x97xf32>
     %s = arith.addf %x, %t : tensor<5x97xf32>
     %r = nn.layer_norm %s scale(%g : tensor<97xf32>) bias(%b : tensor<97xf32>) axis = 1 epsilon = 1.0e-5 : tensor<5x97xf32>
     return %s, %r : tensor<5x97xf32>, tensor<5x97xf32> })"},
  {"rms_norm", "func.func @k(%a: tensor<5x96xf32>, %g: tensor<96xf32>) -> tensor<5x96xf32> { %r = nn.rms_norm %a scale(%g : tensor<96xf32>) axis = 1 epsilon = 1.0e-6 : tensor<5x96xf32> return %r : tensor<5x96xf32> }"},
  {"two_norms_in_a_row", R"(func.func @k(%a: tensor<3x50xf32>, %g: tensor<50xf32>) -> tensor<3x50xf32> {
     %n = nn.layer_norm %a scale(%g : tensor<50xf32>) axis = 1 epsilon = 1.0e-5 : tensor<3x50xf32>
     %e = math.tanh %n : tensor<3x50xf32>
     %r = nn.rms_norm %e axis = 1 epsilon = 1.0e-6 : tensor<3x50xf32> return %r : tensor<3x50xf32> })"},
  {"batch_norm", "func.func @k(%a: tensor<2x5x4x4xf32>, %g: tensor<5xf32>, %b: tensor<5xf32>, %m: tensor<5xf32>, %s: tensor<5xf32>) -> tensor<2x5x4x4xf32> { %v = arith.mulf %s, %s : tensor<5xf32> %r = nn.batch_norm %a, %g, %b, %m, %v feature = 1 epsilon = 1.0e-5 : (tensor<2x5x4x4xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<2x5x4x4xf32> return %r : tensor<2x5x4x4xf32> }"},
  {"dequantize", R"(func.func @k(%q: tensor<6x3x16xi8>, %s: tensor<6x3xf32>) -> tensor<6x3x32xf32> {
     %r = nn.dequantize %q scale(%s) : (tensor<6x3x16xi8>, tensor<6x3xf32>) -> tensor<6x3x32xf32> return %r : tensor<6x3x32xf32> })"},
  {"dequantize_with_zero", R"(func.func @k(%q: tensor<3x16xi8>, %s: tensor<3xf32>, %z: tensor<3xi8>) -> tensor<3x32xf32> {
     %r = nn.dequantize %q scale(%s) zero(%z) : (tensor<3x16xi8>, tensor<3xf32>, tensor<3xi8>) -> tensor<3x32xf32> return %r : tensor<3x32xf32> })"},
  {"cross_entropy", "func.func @k(%z: tensor<6x10xf32>, %t: tensor<6xi64>) -> tensor<6xf32> { %l = nn.cross_entropy %z, %t : tensor<6x10xf32>, tensor<6xi64> -> tensor<6xf32> return %l : tensor<6xf32> }"},
  {"cross_entropy_of_padded_logits", "func.func @k(%z: tensor<2x3x128xbf16>, %t: tensor<2x3xi64>) -> tensor<2x3xf32> { %s = nn.slice %z starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x3x128xbf16> -> tensor<2x3x101xbf16> %l = nn.cross_entropy %s, %t : tensor<2x3x101xbf16>, tensor<2x3xi64> -> tensor<2x3xf32> return %l : tensor<2x3xf32> }"},
  {"gradient_of_padded_logits", R"(func.func @k(%z: tensor<6x128xbf16>, %g: tensor<6xf32>) -> tensor<6x128xbf16> {
     %s = nn.slice %z starts = [0, 0] strides = [1, 1] : tensor<6x128xbf16> -> tensor<6x101xbf16>
     %w = arith.extf %s : tensor<6x101xbf16> to tensor<6x101xf32>
     %p = nn.softmax %w axis = 1 : tensor<6x101xf32>
     %b = nn.broadcast %g dims = [0] : tensor<6xf32> -> tensor<6x101xf32>
     %m = arith.mulf %p, %b : tensor<6x101xf32>
     %n = arith.truncf %m : tensor<6x101xf32> to tensor<6x101xbf16>
     %0 = arith.constant dense<0.0> : tensor<bf16>
     %r = nn.pad %n, %0 low = [0, 0] high = [0, 27] : tensor<6x101xbf16>, tensor<bf16> -> tensor<6x128xbf16>
     return %r : tensor<6x128xbf16> })", 1e-2},
  {"random", "func.func @k(%s: tensor<i64>) -> tensor<3x50xf32> { %r = nn.random uniform %s : tensor<i64> -> tensor<3x50xf32> return %r : tensor<3x50xf32> }"},
};
INSTANTIATE_TEST_SUITE_P(Rows, Codegen, testing::ValuesIn(kRows), nameOf);

const Case kAttention[] = {
  {"plain", "func.func @k(%q: tensor<2x3x10x24xf32>, %k: tensor<2x3x21x24xf32>, %v: tensor<2x3x21x40xf32>) -> tensor<2x3x10x40xf32> { %r = nn.attention %q, %k, %v scale = 2.0e-1 : (tensor<2x3x10x24xf32>, tensor<2x3x21x24xf32>, tensor<2x3x21x40xf32>) -> tensor<2x3x10x40xf32> return %r : tensor<2x3x10x40xf32> }"},
  {"causal", "func.func @k(%q: tensor<1x4x37x32xf32>, %k: tensor<1x4x37x32xf32>, %v: tensor<1x4x37x32xf32>) -> tensor<1x4x37x32xf32> { %r = nn.attention %q, %k, %v scale = 2.0e-1 causal_offset = 0 : (tensor<1x4x37x32xf32>, tensor<1x4x37x32xf32>, tensor<1x4x37x32xf32>) -> tensor<1x4x37x32xf32> return %r : tensor<1x4x37x32xf32> }"},
  {"causal_sees_nothing", "func.func @k(%q: tensor<1x2x20x16xf32>, %k: tensor<1x2x18x16xf32>, %v: tensor<1x2x18x16xf32>) -> tensor<1x2x20x16xf32> { %r = nn.attention %q, %k, %v scale = 2.0e-1 causal_offset = -12 : (tensor<1x2x20x16xf32>, tensor<1x2x18x16xf32>, tensor<1x2x18x16xf32>) -> tensor<1x2x20x16xf32> return %r : tensor<1x2x20x16xf32> }"},
  {"many_keys", "func.func @k(%q: tensor<1x2x9x16xf32>, %k: tensor<1x2x1100x16xf32>, %v: tensor<1x2x1100x16xf32>) -> tensor<1x2x9x16xf32> { %r = nn.attention %q, %k, %v scale = 2.0e-1 : (tensor<1x2x9x16xf32>, tensor<1x2x1100x16xf32>, tensor<1x2x1100x16xf32>) -> tensor<1x2x9x16xf32> return %r : tensor<1x2x9x16xf32> }"},
  {"many_keys_causal", "func.func @k(%q: tensor<1x1x1037x16xf32>, %k: tensor<1x1x1037x16xf32>, %v: tensor<1x1x1037x16xf32>) -> tensor<1x1x1037x16xf32> { %r = nn.attention %q, %k, %v scale = 2.0e-1 causal_offset = 0 : (tensor<1x1x1037x16xf32>, tensor<1x1x1037x16xf32>, tensor<1x1x1037x16xf32>) -> tensor<1x1x1037x16xf32> return %r : tensor<1x1x1037x16xf32> }"},
  {"grouped_bias_softcap", R"(func.func @k(%q: tensor<2x4x7x16xf32>, %k: tensor<2x2x19x16xf32>, %v: tensor<2x2x19x16xf32>, %b: tensor<2x1x7x19xf32>) -> tensor<2x4x7x16xf32> {
     %r = nn.attention %q, %k, %v, %b scale = 2.0e-1 softcap = 3.0 : (tensor<2x4x7x16xf32>, tensor<2x2x19x16xf32>, tensor<2x2x19x16xf32>, tensor<2x1x7x19xf32>) -> tensor<2x4x7x16xf32> return %r : tensor<2x4x7x16xf32> })"},
  {"one_query", "func.func @k(%q: tensor<1x4x1x32xf32>, %k: tensor<1x4x50x32xf32>, %v: tensor<1x4x50x32xf32>) -> tensor<1x4x1x32xf32> { %r = nn.attention %q, %k, %v scale = 2.0e-1 : (tensor<1x4x1x32xf32>, tensor<1x4x50x32xf32>, tensor<1x4x50x32xf32>) -> tensor<1x4x1x32xf32> return %r : tensor<1x4x1x32xf32> }"},
  {"bf16", "func.func @k(%q: tensor<1x2x20x32xbf16>, %k: tensor<1x2x20x32xbf16>, %v: tensor<1x2x20x32xbf16>) -> tensor<1x2x20x32xbf16> { %r = nn.attention %q, %k, %v scale = 2.0e-1 : (tensor<1x2x20x32xbf16>, tensor<1x2x20x32xbf16>, tensor<1x2x20x32xbf16>) -> tensor<1x2x20x32xbf16> return %r : tensor<1x2x20x32xbf16> }", 2e-2},
  {"f64", "func.func @k(%q: tensor<1x2x20x12xf64>, %k: tensor<1x2x20x12xf64>, %v: tensor<1x2x20x12xf64>) -> tensor<1x2x20x12xf64> { %r = nn.attention %q, %k, %v scale = 2.0e-1 : (tensor<1x2x20x12xf64>, tensor<1x2x20x12xf64>, tensor<1x2x20x12xf64>) -> tensor<1x2x20x12xf64> return %r : tensor<1x2x20x12xf64> }", 1e-12, 1, /*for_gpus=*/false},
  {"from_packed_qkv", R"(func.func @k(%x: tensor<2x13x96xf32>, %c: tensor<96xf32>) -> tensor<2x13x32xf32> {
     %cb = nn.broadcast %c dims = [2] : tensor<96xf32> -> tensor<2x13x96xf32>
     %y = arith.addf %x, %cb : tensor<2x13x96xf32>
     %qs = nn.slice %y starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x13x96xf32> -> tensor<2x13x32xf32>
     %ks = nn.slice %y starts = [0, 0, 32] strides = [1, 1, 1] : tensor<2x13x96xf32> -> tensor<2x13x32xf32>
     %vs = nn.slice %y starts = [0, 0, 64] strides = [1, 1, 1] : tensor<2x13x96xf32> -> tensor<2x13x32xf32>
     %qr = nn.reshape %qs : tensor<2x13x32xf32> -> tensor<2x13x2x16xf32>
     %kr = nn.reshape %ks : tensor<2x13x32xf32> -> tensor<2x13x2x16xf32>
     %vr = nn.reshape %vs : tensor<2x13x32xf32> -> tensor<2x13x2x16xf32>
     %q = nn.transpose %qr perm = [0, 2, 1, 3] : tensor<2x13x2x16xf32> -> tensor<2x2x13x16xf32>
     %k = nn.transpose %kr perm = [0, 2, 1, 3] : tensor<2x13x2x16xf32> -> tensor<2x2x13x16xf32>
     %v = nn.transpose %vr perm = [0, 2, 1, 3] : tensor<2x13x2x16xf32> -> tensor<2x2x13x16xf32>
     %a = nn.attention %q, %k, %v scale = 2.5e-1 causal_offset = 0 : (tensor<2x2x13x16xf32>, tensor<2x2x13x16xf32>, tensor<2x2x13x16xf32>) -> tensor<2x2x13x16xf32>
     %t = nn.transpose %a perm = [0, 2, 1, 3] : tensor<2x2x13x16xf32> -> tensor<2x13x2x16xf32>
     %r = nn.reshape %t : tensor<2x13x2x16xf32> -> tensor<2x13x32xf32> return %r : tensor<2x13x32xf32> })"},
  {"transposed_keys_residual", R"(func.func @k(%q: tensor<1x3x9x16xf32>, %kt: tensor<1x3x16x25xf32>, %v: tensor<1x3x25x16xf32>, %x: tensor<1x9x48xf32>) -> tensor<1x9x48xf32> {
     %k = nn.transpose %kt perm = [0, 1, 3, 2] : tensor<1x3x16x25xf32> -> tensor<1x3x25x16xf32>
     %a = nn.attention %q, %k, %v scale = 2.5e-1 : (tensor<1x3x9x16xf32>, tensor<1x3x25x16xf32>, tensor<1x3x25x16xf32>) -> tensor<1x3x9x16xf32>
     %t = nn.transpose %a perm = [0, 2, 1, 3] : tensor<1x3x9x16xf32> -> tensor<1x9x3x16xf32>
     %m = nn.reshape %t : tensor<1x9x3x16xf32> -> tensor<1x9x48xf32>
     %r = arith.addf %m, %x : tensor<1x9x48xf32> return %r : tensor<1x9x48xf32> })"},
  {"in_the_middle_of_other_work", R"(func.func @k(%q: tensor<1x2x5x8xf32>, %k: tensor<1x2x6x8xf32>, %v: tensor<1x2x6x8xf32>) -> (tensor<1x2x5xf32>, tensor<1x2x5x8xf32>) {
     %a = nn.attention %q, %k, %v scale = 2.5e-1 : (tensor<1x2x5x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x5x8xf32>
     %r = nn.reduce sum %a dims = [3] : tensor<1x2x5x8xf32> -> tensor<1x2x5xf32> return %r, %a : tensor<1x2x5xf32>, tensor<1x2x5x8xf32> })"},
};
INSTANTIATE_TEST_SUITE_P(Attention, Codegen, testing::ValuesIn(kAttention), nameOf);

const Case kWhole[] = {
  {"scatter_add_rows", "func.func @k(%x: tensor<9x20xf32>, %i: tensor<5x1xi64>, %u: tensor<5x20xf32>) -> tensor<9x20xf32> { %r = nn.scatter %x[%i], %u axes = [0] kind = add : tensor<9x20xf32>, tensor<5x1xi64>, tensor<5x20xf32> -> tensor<9x20xf32> return %r : tensor<9x20xf32> }"},
  {"scatter_set_elements", "func.func @k(%x: tensor<9x8xf32>, %i: tensor<30x2xi32>, %u: tensor<30xf32>) -> tensor<9x8xf32> { %r = nn.scatter %x[%i], %u axes = [1, 0] kind = set : tensor<9x8xf32>, tensor<30x2xi32>, tensor<30xf32> -> tensor<9x8xf32> return %r : tensor<9x8xf32> }"},
  {"scatter_max_columns_i32", "func.func @k(%x: tensor<3x9x5xi32>, %i: tensor<3x4x1xi64>, %u: tensor<3x4x9xi32>) -> tensor<3x9x5xi32> { %r = nn.scatter %x[%i], %u axes = [2] batch_dims = 1 kind = max : tensor<3x9x5xi32>, tensor<3x4x1xi64>, tensor<3x4x9xi32> -> tensor<3x9x5xi32> return %r : tensor<3x9x5xi32> }"},
  {"top_k", "func.func @k(%x: tensor<2x3x50xf32>) -> (tensor<2x3x7xf32>, tensor<2x3x7xi64>) { %v, %i = nn.top_k %x largest = true : tensor<2x3x50xf32> -> tensor<2x3x7xf32>, tensor<2x3x7xi64> return %v, %i : tensor<2x3x7xf32>, tensor<2x3x7xi64> }"},
  {"top_k_indices_with_ties", "func.func @k(%x: tensor<3x50xi32>) -> tensor<3x9xi32> { %v, %i = nn.top_k %x largest = false : tensor<3x50xi32> -> tensor<3x9xi32>, tensor<3x9xi32> return %i : tensor<3x9xi32> }"},
  {"sort", "func.func @k(%x: tensor<3x101xf32>) -> (tensor<3x101xf32>, tensor<3x101xi64>) { %v, %i = nn.top_k %x largest = true : tensor<3x101xf32> -> tensor<3x101xf32>, tensor<3x101xi64> return %v, %i : tensor<3x101xf32>, tensor<3x101xi64> }"},
  {"sort_with_ties", "func.func @k(%x: tensor<3x99xi64>) -> tensor<3x99xi64> { %v, %i = nn.top_k %x largest = false : tensor<3x99xi64> -> tensor<3x99xi64>, tensor<3x99xi64> return %i : tensor<3x99xi64> }"},
  {"top_k_of_long_rows", "func.func @k(%x: tensor<2x1500xi32>) -> (tensor<2x40xi32>, tensor<2x40xi64>) { %v, %i = nn.top_k %x largest = true : tensor<2x1500xi32> -> tensor<2x40xi32>, tensor<2x40xi64> return %v, %i : tensor<2x40xi32>, tensor<2x40xi64> }"},
  {"top_k_of_few", "func.func @k(%x: tensor<70x8xbf16>) -> (tensor<70x2xbf16>, tensor<70x2xi32>) { %v, %i = nn.top_k %x largest = true : tensor<70x8xbf16> -> tensor<70x2xbf16>, tensor<70x2xi32> return %v, %i : tensor<70x2xbf16>, tensor<70x2xi32> }"},
  {"top_k_with_nans", "func.func @k(%x: tensor<3x90xf32>) -> (tensor<3x60xf32>, tensor<3x60xi64>) { %s = math.sqrt %x : tensor<3x90xf32> %v, %i = nn.top_k %s largest = true : tensor<3x90xf32> -> tensor<3x60xf32>, tensor<3x60xi64> return %v, %i : tensor<3x60xf32>, tensor<3x60xi64> }"},
  {"smallest_with_nans", "func.func @k(%x: tensor<3x90xf32>) -> (tensor<3x60xf32>, tensor<3x60xi64>) { %s = math.sqrt %x : tensor<3x90xf32> %v, %i = nn.top_k %s largest = false : tensor<3x90xf32> -> tensor<3x60xf32>, tensor<3x60xi64> return %v, %i : tensor<3x60xf32>, tensor<3x60xi64> }"},
  {"sort_f64", "func.func @k(%x: tensor<2x65xf64>) -> (tensor<2x65xf64>, tensor<2x65xi32>) { %v, %i = nn.top_k %x largest = false : tensor<2x65xf64> -> tensor<2x65xf64>, tensor<2x65xi32> return %v, %i : tensor<2x65xf64>, tensor<2x65xi32> }", 0},
  {"sort_truth", "func.func @k(%x: tensor<3x77xi1>) -> (tensor<3x77xi1>, tensor<3x77xi64>) { %v, %i = nn.top_k %x largest = true : tensor<3x77xi1> -> tensor<3x77xi1>, tensor<3x77xi64> return %v, %i : tensor<3x77xi1>, tensor<3x77xi64> }"},
  {"argmax", "func.func @k(%x: tensor<5x33xf32>) -> tensor<5x1xi64> { %v, %i = nn.top_k %x largest = true : tensor<5x33xf32> -> tensor<5x1xf32>, tensor<5x1xi64> return %i : tensor<5x1xi64> }"},
};
INSTANTIATE_TEST_SUITE_P(Whole, Codegen, testing::ValuesIn(kWhole), nameOf);
// clang-format on

}  // namespace
}  // namespace partita::kernels
