// The gradient of attention against the interpreter: tiles that sizes fill and
// do not, each mask, each type, and what has no tiles.
#include <gtest/gtest.h>

#include "compiler/kernels/codegen_fixture.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::kernels {
namespace {

struct Case {
  std::string name;
  // Batch, query heads, key-value heads, queries, keys, head sizes of q and v.
  int64_t b, n, g, l, s, h, hv;
  std::string attributes;
  std::string bias;  // its shape; empty: none
  std::string element = "f32";
  double tolerance = 3e-5;
  std::string results = "012";  // those that are wanted
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

std::string textOf(const Case& test) {
  const auto type = [&](int64_t heads, int64_t rows, int64_t size) {
    std::string text = "tensor<";
    for (int64_t dim : {test.b, heads, rows, size})
      text += std::to_string(dim) + "x";
    return text + test.element + ">";
  };
  const std::string q = type(test.n, test.l, test.h),
                    k = type(test.g, test.s, test.h),
                    v = type(test.g, test.s, test.hv),
                    y = type(test.n, test.l, test.hv),
                    bias = "tensor<" + test.bias + "x" + test.element + ">";
  const std::string of_bias = test.bias.empty() ? "" : ", " + bias;
  const std::string all[] = {q, k, v, bias};
  std::string types, values;
  for (char result : test.results) {
    types += (types.empty() ? "" : ", ") + all[result - '0'];
    values += std::string(values.empty() ? "" : ", ") + "%r#" + result;
  }
  const bool biased = !test.bias.empty(),
             wants_bias = llvm::StringRef(test.results).contains('3');
  return "func.func @k(%q: " + q + ", %k: " + k + ", %v: " + v + ", %y: " + y +
         ", %g: " + y + (biased ? ", %b: " + bias : "") + ") -> (" + types +
         ") { %r:" + (wants_bias ? "4" : "3") +
         " = nn.attention_grad %q, %k, %v, %y, %g" + (biased ? ", %b" : "") +
         " scale = 3.0e-1 " + test.attributes + " : (" + q + ", " + k + ", " +
         v + ", " + y + ", " + y + of_bias + ") -> (" + q + ", " + k + ", " +
         v + (wants_bias ? of_bias : "") + ") return " + values + " : " +
         types + " }";
}

class AttentionGrad : public testing::TestWithParam<Case> {};

TEST_P(AttentionGrad, EqualsTheInterpreter) {
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(textOf(GetParam()));
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->difference(GetParam().tolerance, GetParam().tolerance, 1.0),
            "");
}

const Case kCases[] = {
    {"whole_tiles", 2, 2, 2, 16, 32, 16, 32, "", ""},
    {"odd_sizes", 2, 3, 3, 13, 21, 24, 40, "", ""},
    {"one_query", 1, 2, 2, 1, 50, 32, 32, "", ""},
    {"few_keys", 1, 2, 2, 9, 3, 7, 5, "", ""},
    {"many_keys", 1, 1, 1, 11, 700, 16, 16, "", ""},
    {"causal", 1, 2, 2, 37, 37, 16, 16, "causal_offset = 0", ""},
    {"causal_past", 1, 2, 2, 10, 40, 16, 16, "causal_offset = 30", ""},
    {"causal_sees_nothing", 1, 2, 2, 20, 18, 16, 16, "causal_offset = -12", ""},
    {"shared_keys", 2, 6, 2, 12, 19, 16, 16, "causal_offset = 7", ""},
    {"bias", 3, 2, 2, 13, 21, 16, 16, "", "1x2x13x21", "f32", 3e-5, "0123"},
    {"bias_alone", 2, 2, 2, 8, 16, 16, 16, "", "1x2x8x16", "f32", 3e-5, "3"},
    {"bias_without_gradient", 2, 4, 2, 9, 17, 16, 16, "causal_offset = 8",
     "2x1x1x17"},
    {"keys_alone", 2, 2, 2, 9, 17, 16, 16, "", "", "f32", 3e-5, "1"},
    {"bf16", 1, 2, 2, 20, 20, 32, 32, "causal_offset = 0", "", "bf16", 2e-2},
    {"bf16_bias", 2, 2, 2, 20, 20, 32, 32, "", "1x2x20x20", "bf16", 2e-2,
     "0123"},
    {"f64", 1, 2, 2, 20, 21, 12, 12, "causal_offset = 1", "", "f64", 1e-12},
    // Decomposed.
    {"softcap", 1, 2, 2, 9, 12, 8, 8, "softcap = 2.0", ""},
    {"bias_of_all_heads", 2, 2, 2, 9, 12, 8, 8, "", "1x1x9x12", "f32", 3e-5,
     "0123"},
};
INSTANTIATE_TEST_SUITE_P(Codegen, AttentionGrad, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace partita::kernels
