// Compares attention with windows, sinks, shifts, segments, blocks of keys and
// lse, and its gradient, with the interpreter: on the CPU, and with tensor
// cores emulated.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/kernels/codegen_fixture.h"
#include "compiler/kernels/warp_emulation.h"
#include "dialects/nn/interpreter.h"

namespace partita::kernels {
namespace {

struct Case {
  std::string name;
  // Batch, query heads, key-value heads, queries, keys, head sizes of q and v.
  int64_t b, n, g, l, s, h, hv;
  std::string attributes;
  // Any of "shift", "segments", "lse", "bias" (one matrix per head),
  // "first_head". Integers are random, from 0 to 9. The result and lse that
  // gradients take are random too, unless "own_lse" asks for attention's.
  std::string extras;
  std::string element = "f32";
  double tolerance = 3e-5;

  bool has(const char* extra) const {
    return extras.find(extra) != std::string::npos;
  }
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

std::string tensor(std::initializer_list<int64_t> shape,
                   const std::string& element) {
  std::string text = "tensor<";
  for (int64_t dim : shape) text += std::to_string(dim) + "x";
  return text + element + ">";
}

// Joins the arguments of the kernel and the operands of the operation.
struct Text {
  std::string arguments, operands, types;

  // `before` and `after` stand around the operand.
  void add(const std::string& name, const std::string& type,
           const std::string& before, const std::string& after = "") {
    arguments += (arguments.empty() ? "%" : ", %") + name + ": " + type;
    operands += before + "%" + name + after;
    types += (types.empty() ? "" : ", ") + type;
  }
};

std::string textOf(const Case& test, bool backward,
                   const std::string& name = "k") {
  const std::string q = tensor({test.b, test.n, test.l, test.h}, test.element),
                    k = tensor({test.b, test.g, test.s, test.h}, test.element),
                    v = tensor({test.b, test.g, test.s, test.hv}, test.element),
                    y = tensor({test.b, test.n, test.l, test.hv}, test.element),
                    bias = tensor({1, test.n, test.l, test.s}, test.element),
                    lse = tensor({test.b, test.n, test.l}, "f32");
  Text text;
  text.add("q", q, "");
  text.add("k", k, ", ");
  text.add("v", v, ", ");
  if (backward) text.add("y", y, ", ");
  if (backward) text.add("g", y, ", ");
  if (test.has("bias")) text.add("b", bias, ", ");
  if (test.has("shift")) text.add("t", "tensor<i64>", " shift(", ")");
  if (test.has("segments")) {
    text.add("i", tensor({test.b, test.l}, "i32"), " segments(");
    text.add("j", tensor({test.b, test.s}, "i32"), ", ", ")");
  }
  if (backward && test.has("lse")) text.add("e", lse, " lse(", ")");
  if (test.has("first_head")) text.add("f", "tensor<i64>", " first_head(", ")");
  std::string results = y, values = "%r#0";
  int count = 1;
  const auto result = [&](const std::string& type) {
    results += ", " + type;
    values += ", %r#" + std::to_string(count++);
  };
  if (backward) {
    results = q;
    result(k);
    result(v);
    if (test.has("bias")) result(bias);
  } else if (test.has("lse")) {
    result(lse);
  }
  return "func.func @" + name + "(" + text.arguments + ") -> (" + results +
         ") { %r:" + std::to_string(count) + " = nn.attention" +
         (backward ? "_grad " : " ") + text.operands + " scale = 3.0e-1 " +
         test.attributes + " : (" + text.types + ") -> (" + results +
         ") return " + values + " : " + results + " }";
}

// Replaces the random result and lse among a gradient's arguments (q, k, v,
// result, its gradient, ..., lse) by those of `attention`, for tests without
// other operands.
void computeResultAndLse(mlir::func::FuncOp attention,
                         std::vector<nn::Tensor>& arguments) {
  auto values = nn::interpret(
      attention, llvm::ArrayRef<nn::Tensor>(arguments).take_front(3));
  ASSERT_TRUE(mlir::succeeded(values));
  arguments[3] = (*values)[0];
  arguments.back() = (*values)[1];
}

// Returns the number of threads that compute an item.
int64_t expectEqual(const Case& test, bool backward,
                    const CodegenOptions& options) {
  std::string text = textOf(test, backward);
  const bool own_lse = backward && test.has("own_lse");
  if (own_lse) text += "\n" + textOf(test, /*backward=*/false, "attention");
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(text, options);
  if (!kernel) {
    ADD_FAILURE() << text;
    return 0;
  }
  const auto prepare = [&](std::vector<nn::Tensor>& arguments) {
    if (own_lse)
      computeResultAndLse(
          kernel->module().lookupSymbol<mlir::func::FuncOp>("attention"),
          arguments);
  };
  EXPECT_EQ(kernel->difference(test.tolerance, test.tolerance, 1, prepare), "");
  return kernel->code().team;
}

// A table of blocks: those at the diagonal, the first column of most rows, and
// a quarter of the others. The last row of each table is empty.
std::string blocks(int64_t heads, int64_t rows, int64_t columns, int64_t size) {
  std::string text = "blocks = dense<[";
  for (int64_t head = 0; head < heads; ++head) {
    text += head > 0 ? ", [" : "[";
    for (int64_t row = 0; row < rows; ++row) {
      text += row > 0 ? ", [" : "[";
      for (int64_t column = 0; column < columns; ++column) {
        const bool sees =
            row + 1 < rows && (row == column || (column == 0 && row % 3 != 1) ||
                               (7 * row + 5 * column + 3 * head) % 4 == 0);
        text += (column > 0 ? ", " : "") + std::to_string(sees ? 1 : 0);
      }
      text += "]";
    }
    text += "]";
  }
  return text + "]> : " + tensor({heads, rows, columns}, "i1") +
         " block_size = " + std::to_string(size);
}

class MaskedAttention : public testing::TestWithParam<Case> {};

TEST_P(MaskedAttention, EqualsTheInterpreter) {
  expectEqual(GetParam(), /*backward=*/false, hostCodegenOptions());
}
TEST_P(MaskedAttention, GradientEqualsTheInterpreter) {
  expectEqual(GetParam(), /*backward=*/true, hostCodegenOptions());
}

const Case kCases[] = {
    {"window", 1, 2, 2, 100, 100, 16, 16, "causal_offset = 0 window = 30", ""},
    {"one_key", 1, 2, 2, 1, 1, 16, 16, "causal_offset = 0", ""},
    {"window_of_one", 1, 1, 1, 37, 37, 16, 24, "causal_offset = 0 window = 1",
     ""},
    {"two_sided", 2, 2, 1, 90, 90, 16, 16, "causal_offset = 20 window = 41",
     ""},
    {"window_of_many_blocks", 1, 1, 1, 60, 1500, 16, 16,
     "causal_offset = 1420 window = 700", "", "f32", 1e-4},
    {"window_in_one_block", 1, 1, 1, 60, 1200, 16, 16,
     "causal_offset = 1150 window = 512", "", "f32", 1e-4},
    {"window_behind_all_keys", 1, 1, 1, 20, 30, 16, 16,
     "causal_offset = 100 window = 40", ""},
    {"window_before_all_keys", 1, 1, 1, 20, 30, 16, 16,
     "causal_offset = -15 window = 3", ""},
    {"window_wider_than_keys", 1, 1, 1, 20, 30, 16, 16,
     "causal_offset = 4 window = 1000", ""},
    {"shift", 1, 2, 2, 50, 70, 16, 16, "causal_offset = 3", "shift"},
    {"shift_and_window", 2, 2, 1, 50, 70, 16, 16,
     "causal_offset = -4 window = 18", "shift"},
    {"segments", 2, 2, 2, 40, 50, 16, 16, "", "segments"},
    {"one_query", 2, 4, 2, 1, 100, 16, 24, "", ""},
    {"one_query_of_segments", 3, 4, 2, 1, 90, 20, 16, "", "segments"},
    {"one_query_of_many_segments", 2, 3, 1, 1, 1500, 64, 64, "", "segments lse",
     "f32", 1e-4},
    {"one_query_and_window", 1, 2, 2, 1, 100, 16, 150,
     "causal_offset = 80 window = 30", "bias"},
    {"one_query_that_sees_nothing", 1, 2, 2, 1, 20, 16, 16,
     "causal_offset = -5", "lse"},
    {"one_query_and_shift", 2, 2, 1, 1, 70, 16, 16, "causal_offset = -4",
     "shift"},
    {"one_query_of_bf16", 2, 2, 1, 1, 70, 16, 16, "", "segments", "bf16", 2e-2},
    {"one_query_of_f64", 2, 2, 1, 1, 70, 16, 16, "", "segments", "f64", 1e-9},
    {"causal_segments", 3, 4, 2, 40, 40, 16, 16, "causal_offset = 0",
     "segments"},
    // Gradients have a random lse, so the weights of a row sum to many times 1.
    {"sinks", 1, 2, 2, 100, 100, 16, 16,
     "causal_offset = 0 window = 30 sinks = 4", ""},
    {"sinks_of_many_blocks", 1, 1, 1, 60, 1500, 16, 16,
     "causal_offset = 1420 window = 700 sinks = 40", "lse", "f32", 1e-4},
    {"more_sinks_than_keys", 1, 2, 1, 40, 50, 16, 16,
     "causal_offset = 3 window = 5 sinks = 200", ""},
    {"sinks_and_shift", 2, 2, 1, 50, 70, 16, 16,
     "causal_offset = 9 window = 12 sinks = 17", "shift segments"},
    {"blocks", 1, 2, 2, 100, 100, 16, 16, blocks(1, 7, 7, 16), ""},
    {"blocks_of_heads", 2, 4, 2, 64, 96, 16, 24, blocks(4, 2, 3, 32), ""},
    {"causal_blocks", 1, 2, 1, 130, 130, 16, 16,
     "causal_offset = 0 " + blocks(2, 5, 5, 32), "bias"},
    {"blocks_of_many_keys", 1, 1, 1, 130, 2700, 16, 16, blocks(1, 3, 43, 64),
     "own_lse", "f32", 1e-4},
    {"large_blocks", 1, 1, 1, 20, 1300, 16, 16, blocks(1, 1, 2, 1024), ""},
    {"blocks_of_part_vectors", 1, 2, 2, 40, 50, 16, 16, blocks(2, 7, 9, 6), ""},
    {"blocks_of_few_queries", 1, 1, 1, 30, 60, 16, 16,
     "causal_offset = 20 " + blocks(1, 30, 60, 1), ""},
    {"blocks_and_shift", 2, 2, 1, 50, 70, 16, 16,
     "causal_offset = 5 window = 40 " + blocks(2, 4, 5, 16), "shift segments"},
    {"blocks_of_a_head", 1, 2, 2, 40, 40, 16, 16, blocks(12, 3, 3, 16),
     "first_head"},
    {"blocks_and_sinks", 1, 1, 1, 100, 100, 16, 16,
     "causal_offset = 0 window = 20 sinks = 8 " + blocks(1, 4, 4, 32),
     "own_lse"},
    {"small_blocks_and_sinks", 2, 2, 1, 20, 13, 16, 16,
     "causal_offset = 2 window = 5 sinks = 2 " + blocks(1, 7, 5, 3), ""},
    {"blocks_of_half_vectors_and_sinks", 1, 2, 2, 40, 40, 16, 16,
     "causal_offset = 0 window = 9 sinks = 5 " + blocks(2, 5, 5, 8), "lse",
     "f32", 1e-4},
    {"blocks_bf16", 1, 2, 2, 64, 64, 32, 32,
     "causal_offset = 0 " + blocks(1, 4, 4, 16), "lse", "bf16", 2e-2},
    {"blocks_f64", 1, 2, 2, 64, 64, 12, 12,
     "causal_offset = 0 " + blocks(2, 4, 4, 16), "", "f64", 1e-12},
    {"lse", 2, 4, 2, 21, 35, 16, 24, "", "lse", "f32", 1e-4},
    {"lse_of_many_keys", 1, 1, 1, 9, 1100, 16, 16, "", "lse", "f32", 1e-4},
    {"lse_of_hidden_keys", 1, 2, 2, 40, 30, 16, 16, "causal_offset = -12",
     "lse"},
    {"all", 2, 4, 2, 43, 52, 24, 40, "causal_offset = 5 window = 33",
     "shift segments lse"},
    {"all_with_bias", 2, 2, 2, 43, 52, 24, 40, "causal_offset = 5 window = 33",
     "shift segments lse bias"},
    {"window_with_bias", 2, 2, 2, 43, 52, 16, 16,
     "causal_offset = 9 window = 7", "bias"},
    {"softcap", 1, 2, 2, 20, 20, 8, 8,
     "causal_offset = 2 window = 6 softcap = 2.0", "lse"},
    {"bf16", 1, 2, 2, 40, 40, 32, 32, "causal_offset = 0 window = 9",
     "shift segments lse", "bf16", 2e-2},
    {"f64", 1, 2, 2, 40, 40, 12, 12, "causal_offset = 0 window = 9",
     "shift segments", "f64", 1e-12},
    {"f64_lse", 1, 2, 2, 20, 20, 12, 12, "causal_offset = 0 window = 9", "lse",
     "f64", 1e-6},
};
INSTANTIATE_TEST_SUITE_P(Codegen, MaskedAttention, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& info) {
                           return info.param.name;
                         });

// Lanes behind a head become -mean where a mean is subtracted, and 0 / 0 where
// something divides.
TEST(FusedAttention, LanesBehindTheHeadAreNotSummed) {
  for (const char* operation : {"subf", "divf"})
    for (const int64_t size : {8, 20, 72}) {
      const bool divides = std::string(operation) == "divf";
      const auto of = [&](int64_t heads, int64_t rows) {
        return tensor({2, heads, rows, size}, "f32");
      };
      const std::string q = of(4, 1), k = of(2, 70);
      // A divisor of each lane, or a number of each row that is subtracted.
      const std::string lanes = tensor({size}, "f32"),
                        a = divides ? lanes : tensor({2, 4, 1}, "f32"),
                        b = divides ? lanes : tensor({2, 2, 70}, "f32"),
                        dims = divides ? "[3]" : "[0, 1, 2]";
      const std::string text =
          "func.func @k(%q: " + q + ", %k: " + k + ", %v: " + k + ", %a: " + a +
          ", %b: " + b + ") -> (" + q +
          ", tensor<2x4x1xf32>) {\n%c = " + "nn.broadcast %a dims = " + dims +
          " : " + a + " -> " + q + "\n%d = nn.broadcast %b dims = " + dims +
          " : " + b + " -> " + k + "\n%e = arith." + operation +
          " %q, %c : " + q + "\n%f = arith." + operation + " %k, %d : " + k +
          "\n%r:2 = nn.attention %e, %f, %v scale = 3.0e-1 : (" + q + ", " + k +
          ", " + k + ") -> (" + q + ", tensor<2x4x1xf32>)\nreturn %r#0, " +
          "%r#1 : " + q + ", tensor<2x4x1xf32> }";
      std::unique_ptr<CompiledKernel> kernel = CompiledKernel::fromText(text);
      ASSERT_NE(kernel, nullptr) << text;
      const auto prepare = [&](std::vector<nn::Tensor>& arguments) {
        for (size_t i = 3; divides && i < arguments.size(); ++i)
          for (int64_t lane = 0; lane < size; ++lane)
            arguments[i].setFloat(lane, 1 + 0.25 * static_cast<double>(lane));
      };
      EXPECT_EQ(kernel->difference(1e-4, 1e-4, 1, prepare), "")
          << operation << " " << size;
    }
}

// A single query reads no keys outside of its range, which has whole vectors of
// a window, or whole blocks of 64 keys that share a segment.
TEST(RowOfAttention, SkipsKeysOutsideOfItsRange) {
  const Case window = {
      "", 1, 2, 2, 1, 600, 16, 16, "causal_offset = 319 window = 64", ""};
  const Case segments = {"", 1, 2, 2, 1, 600, 16, 16, "", "segments"};
  for (const Case& test : {window, segments}) {
    std::unique_ptr<CompiledKernel> kernel =
        CompiledKernel::fromText(textOf(test, /*backward=*/false));
    ASSERT_NE(kernel, nullptr);
    std::mt19937 generator(3);
    std::vector<nn::Tensor> arguments = kernel->randomArguments(generator);
    // Keys 256 to 319 are seen.
    const auto is_seen = [](int64_t key) { return key >= 256 && key < 320; };
    for (const size_t i : {1, 2})
      for (int64_t at = 0; at < arguments[i].size(); ++at)
        if (!is_seen(arguments[i].index(at)[2]))
          arguments[i].setFloat(at, std::nan(""));
    if (test.has("segments")) {
      arguments[3].setInt(0, 1);
      for (int64_t key = 0; key < test.s; ++key)
        arguments[4].setInt(key, is_seen(key) ? 1 : 0);
    }
    const std::vector<nn::Tensor> found = kernel->results(arguments, {1.0});
    for (int64_t at = 0; at < found[0].size(); ++at)
      ASSERT_TRUE(std::isfinite(found[0].getFloat(at)))
          << test.attributes << " " << at;
  }
}

// Kernels on tensor cores skip keys before a window, and have the other masks
// as a bias. Those that cannot are computed without tensor cores.
class MmaMaskedAttention : public testing::TestWithParam<Case> {};

TEST_P(MmaMaskedAttention, EqualsTheInterpreter) {
  // Windows, shifts, segments and lse stay on tensor cores.
  EXPECT_EQ(expectEqual(GetParam(), /*backward=*/false, ptxCodegenOptions()),
            kBlock);
}
TEST_P(MmaMaskedAttention, GradientEqualsTheInterpreter) {
  expectEqual(GetParam(), /*backward=*/true, ptxCodegenOptions());
}

const Case kMmaCases[] = {
    {"window", 1, 1, 1, 100, 100, 16, 16, "causal_offset = 0 window = 30", "",
     "bf16", 3e-2},
    {"window_of_tiles", 1, 1, 1, 400, 400, 16, 16,
     "causal_offset = 0 window = 150", "", "bf16", 3e-2},
    {"two_sided_window", 1, 2, 1, 200, 230, 16, 32,
     "causal_offset = 60 window = 121", "", "f32", 1e-4},
    {"window_of_one", 1, 1, 1, 130, 130, 16, 16, "causal_offset = 0 window = 1",
     "", "bf16", 3e-2},
    {"window_behind_all_keys", 1, 1, 1, 150, 90, 16, 16,
     "causal_offset = 200 window = 160", "", "bf16", 3e-2},
    {"window_before_all_keys", 1, 1, 1, 150, 90, 16, 16,
     "causal_offset = -80 window = 3", "", "bf16", 3e-2},
    {"widest_window", 1, 1, 1, 90, 70, 16, 16,
     "causal_offset = 4 window = 9223372036854775807", "", "bf16", 3e-2},
    {"window_and_segments", 1, 1, 1, 150, 150, 16, 16,
     "causal_offset = 0 window = 70", "segments", "bf16", 3e-2},
    {"shift_and_window", 2, 2, 1, 50, 70, 32, 16,
     "causal_offset = -4 window = 18", "shift", "bf16", 3e-2},
    {"segments", 2, 1, 1, 40, 50, 16, 16, "", "segments", "bf16", 3e-2},
    {"window_with_bias", 2, 1, 1, 43, 52, 16, 16,
     "causal_offset = 9 window = 7", "bias", "f32", 1e-4},
    {"segments_with_bias", 2, 1, 1, 20, 30, 16, 16, "", "segments bias", "f32",
     1e-4},
    {"sinks", 1, 1, 1, 100, 100, 16, 16,
     "causal_offset = 0 window = 30 sinks = 4", "", "bf16", 3e-2},
    {"blocks_of_heads", 1, 2, 2, 64, 96, 16, 16, blocks(2, 2, 3, 32), "",
     "bf16", 3e-2},
    {"lse", 1, 2, 1, 20, 35, 16, 16, "causal_offset = 12", "lse", "f32", 1e-4},
    {"own_lse", 1, 4, 2, 150, 150, 64, 64, "causal_offset = 0", "lse own_lse",
     "bf16", 3e-2},
    {"lse_of_window", 1, 1, 1, 200, 200, 32, 48,
     "causal_offset = 0 window = 90", "lse own_lse", "f16", 1e-2},
    {"lse_of_hidden_keys", 1, 1, 1, 100, 70, 16, 16, "causal_offset = -50",
     "lse own_lse", "f32", 1e-4},
    {"lse_and_segments", 2, 1, 1, 40, 50, 16, 16, "", "segments lse", "f32",
     1e-4},
    {"blocks_of_tiles", 1, 2, 1, 260, 300, 32, 32, blocks(2, 3, 3, 128),
     "lse own_lse", "bf16", 3e-2},
    {"causal_blocks", 2, 2, 1, 300, 300, 32, 16,
     "causal_offset = 0 window = 200 " + blocks(1, 3, 3, 128), "lse own_lse",
     "f16", 1e-2},
    {"blocks_of_f32", 1, 1, 1, 200, 290, 64, 64, blocks(1, 2, 3, 128), "bias",
     "f32", 1e-4},
    {"blocks_without_bias_gradient", 1, 2, 2, 300, 300, 16, 16,
     blocks(2, 3, 3, 128), "", "bf16", 3e-2},
    {"small_blocks", 1, 2, 2, 150, 250, 16, 16,
     "causal_offset = 90 " + blocks(2, 10, 16, 16), "", "bf16", 3e-2},
    {"blocks_and_segments", 2, 2, 2, 200, 200, 16, 16, blocks(2, 2, 2, 128),
     "segments", "f32", 1e-4},
    {"blocks_of_a_head", 1, 2, 2, 140, 140, 16, 16, blocks(12, 2, 2, 128),
     "first_head", "f32", 1e-4},
    {"blocks_and_shift", 2, 2, 1, 150, 270, 16, 16,
     "causal_offset = 150 window = 90 " + blocks(2, 3, 5, 64), "shift segments",
     "bf16", 3e-2},
    {"blocks_and_sinks", 1, 2, 2, 200, 200, 16, 16,
     "causal_offset = 0 window = 20 sinks = 8 " + blocks(2, 2, 2, 128),
     "lse own_lse", "bf16", 3e-2},
    {"window_of_tiles_with_bias", 2, 1, 1, 150, 200, 16, 16,
     "causal_offset = 40 window = 70", "bias", "bf16", 3e-2},
    {"blocks_of_tiles_with_bias", 2, 2, 2, 200, 260, 16, 16,
     "causal_offset = 60 " + blocks(2, 2, 3, 128), "bias", "bf16", 3e-2},
    {"blocks_that_show_nothing", 1, 1, 1, 100, 100, 16, 16,
     blocks(1, 1, 1, 128), "", "bf16", 3e-2},
};
INSTANTIATE_TEST_SUITE_P(Codegen, MmaMaskedAttention,
                         testing::ValuesIn(kMmaCases),
                         [](const testing::TestParamInfo<Case>& info) {
                           return info.param.name;
                         });

// The products of warps that a kernel multiplies.
int64_t productsOf(const Case& test, bool backward) {
  const int64_t before = multipliedFragments();
  expectEqual(test, backward, ptxCodegenOptions());
  return multipliedFragments() - before;
}

// Blocks of 128 queries (64 in the gradient) see tiles of 64 keys. With a
// window of 64 keys, a block sees the tiles with its own positions and the one
// before them, if there is one.
TEST(MmaMaskedKernels, VisitOnlyTilesOfTheWindow) {
  const Case test = {"", 1,      1,   1, 256, 256, 64, 64, "causal_offset = 0",
                     "", "bf16", 3e-2};
  Case window = test;
  window.attributes += " window = 64";
  const struct {
    bool backward;
    int64_t causal_tiles, window_tiles;
  } kinds[] = {{false, 2 + 4, 2 + 3}, {true, 1 + 2 + 3 + 4, 1 + 3 * 2}};
  for (const auto& kind : kinds) {
    const int64_t causal = productsOf(test, kind.backward),
                  seen = productsOf(window, kind.backward);
    EXPECT_GT(seen, 0);
    EXPECT_EQ(seen * kind.causal_tiles, causal * kind.window_tiles)
        << kind.backward;
  }
}

// A table of three blocks in each direction, of which a third is seen: those
// at the diagonal. With blocks of 128, tiles have no hidden pairs.
TEST(MmaMaskedKernels, VisitOnlyTilesOfBlocks) {
  std::string table = "blocks = dense<[[";
  for (int row = 0; row < 3; ++row) {
    table += row > 0 ? ", [" : "[";
    for (int column = 0; column < 3; ++column)
      table += (column > 0 ? ", " : "") + std::to_string(row == column);
    table += "]";
  }
  table += "]]> : tensor<1x3x3xi1> block_size = ";
  for (const int64_t size : {64, 128}) {
    Case all = {"", 1, 1, 1, 3 * size, 3 * size, 16, 16, "", "", "bf16", 3e-2};
    Case listed = all;
    listed.attributes = table + std::to_string(size);
    // A block of 128 queries has two rows of the table with blocks of 64.
    EXPECT_EQ(productsOf(all, false),
              (size == 64 ? 2 : 3) * productsOf(listed, false));
    EXPECT_EQ(productsOf(all, true), 3 * productsOf(listed, true));
  }
}

// Sinks and their window hide pairs of the tiles that the table shows; they are
// a bias.
TEST(MmaMaskedKernels, VisitOnlyTilesOfBlocksWithSinks) {
  const Case all = {"", 1, 1, 1, 192, 192, 16, 16, "", "", "bf16", 3e-2};
  Case masked = all;
  masked.attributes =
      "causal_offset = 0 window = 20 sinks = 8 "
      "blocks = dense<[[[1, 0, 0], [0, 1, 0], [0, 0, 1]]]> : "
      "tensor<1x3x3xi1> block_size = 64";
  EXPECT_EQ(productsOf(all, false), 2 * productsOf(masked, false));
  EXPECT_EQ(productsOf(all, true), 3 * productsOf(masked, true));
}

// The gradient of a bias is 0 in blocks of 64 x 64 that no other mask shows.
TEST(MmaMaskedKernels, VisitOnlySeenBlocksOfABias) {
  const Case all = {"", 1, 1, 1, 192, 192, 16, 16, "", "bias", "bf16", 3e-2};
  const int64_t products = productsOf(all, true);
  // Of 9 blocks, causality shows 6, a window of 64 keys 5, the table 3.
  for (const auto& [attributes, seen] :
       {std::pair("causal_offset = 0", 6),
        std::pair("causal_offset = 0 window = 64", 5),
        std::pair("blocks = dense<[[[1, 0, 0], [0, 1, 0], [0, 0, 1]]]> : "
                  "tensor<1x3x3xi1> block_size = 64",
                  3)}) {
    Case masked = all;
    masked.attributes = attributes;
    EXPECT_EQ(seen * products, 9 * productsOf(masked, true)) << attributes;
  }
}

// Each tile of the scores is the result of one product, or an operand or the
// shape of the result of another: five in the gradient, if it need not sum the
// weights again.
TEST(MmaMaskedKernels, MultiplyEachTileOnceForEachResult) {
  const Case test = {"", 1, 2, 2, 128, 192, 64, 64, "", "", "bf16", 3e-2};
  Case kept = test;
  kept.extras = "lse own_lse";
  // A product of a tile of all scores, in fragments of 16 x 8 x 16.
  const int64_t product = 2 * 128 * 192 * 64 / (16 * 8 * 16);
  // The kernel runs once, and then in three parts.
  EXPECT_EQ(productsOf(test, false), 2 * product * 2);
  EXPECT_EQ(productsOf(test, true), 2 * product * 6);
  EXPECT_EQ(productsOf(kept, true), 2 * product * 5);
}

}  // namespace
}  // namespace partita::kernels
