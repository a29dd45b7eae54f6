// Attention kernels described by their sizes, for tests of the GPU code.
#ifndef PARTITA_COMPILER_KERNELS_ATTENTION_CASES_H_
#define PARTITA_COMPILER_KERNELS_ATTENTION_CASES_H_

#include <gtest/gtest.h>

#include <initializer_list>
#include <ostream>
#include <string>

#include "compiler/kernels/codegen_fixture.h"

namespace partita::kernels {

struct Case {
  std::string name;
  // Batch, query heads, key-value heads, queries, keys, head sizes of q and v.
  int64_t b, n, g, l, s, h, hv;
  std::string attributes;
  std::string bias;  // shape of the bias; empty: no bias
  std::string element = "bf16";
  double tolerance = 2e-2;
  bool lse = false;  // the kernel returns the log-sum-exp, too
};

inline void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

inline std::string typeOf(const Case& test,
                          std::initializer_list<int64_t> shape) {
  std::string text = "tensor<";
  for (int64_t dim : shape) text += std::to_string(dim) + "x";
  return text + test.element + ">";
}

inline std::string textOf(const Case& test) {
  const std::string q = typeOf(test, {test.b, test.n, test.l, test.h}),
                    k = typeOf(test, {test.b, test.g, test.s, test.h}),
                    v = typeOf(test, {test.b, test.g, test.s, test.hv}),
                    y = typeOf(test, {test.b, test.n, test.l, test.hv}),
                    bias = "tensor<" + test.bias + "x" + test.element + ">";
  const bool biased = !test.bias.empty();
  const std::string results = !test.lse
                                  ? y
                                  : y + ", tensor<" + std::to_string(test.b) +
                                        "x" + std::to_string(test.n) + "x" +
                                        std::to_string(test.l) + "xf32>";
  return "func.func @k(%q: " + q + ", %k: " + k + ", %v: " + v +
         (biased ? ", %b: " + bias : "") + ") -> (" + results +
         ") { %r:" + (test.lse ? "2" : "1") + " = nn.attention %q, %k, %v" +
         (biased ? ", %b" : "") + " scale = 3.0e-1 " + test.attributes +
         " : (" + q + ", " + k + ", " + v + (biased ? ", " + bias : "") +
         ") -> (" + results + ") return %r#0" + (test.lse ? ", %r#1" : "") +
         " : " + results + " }";
}

inline CodegenOptions emulated(const std::string& chip = "sm_90") {
  CodegenOptions options = ptxCodegenOptions({.chip = chip});
  EXPECT_TRUE(options.tensor_cores);
  EXPECT_EQ(options.warpgroups, chip == "sm_90a");
  return options;
}

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_ATTENTION_CASES_H_
