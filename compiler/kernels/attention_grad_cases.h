// Kernels of attention's gradient described by their sizes, for tests.
#ifndef PARTITA_COMPILER_KERNELS_ATTENTION_GRAD_CASES_H_
#define PARTITA_COMPILER_KERNELS_ATTENTION_GRAD_CASES_H_

#include <ostream>
#include <string>

#include "compiler/kernels/codegen_fixture.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::kernels {

struct Case {
  std::string name;
  // Batch, query heads, key-value heads, queries, keys, head sizes of q and v.
  int64_t b, n, g, l, s, h, hv;
  std::string attributes;
  std::string bias;  // shape of the bias; empty: no bias
  std::string element = "f32";
  double tolerance = 3e-5;
  std::string results = "012";  // results that are computed
  // The kernel's result has the rows of all gradients side by side.
  bool joined = false;
  bool lse = false;         // an argument has the log-sum-exp, which is random
  bool first_head = false;  // an argument has the number of the first head
};

inline void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

inline std::string textOf(const Case& test) {
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
                    bias = "tensor<" + test.bias + "x" + test.element + ">",
                    lse = "tensor<" + std::to_string(test.b) + "x" +
                          std::to_string(test.n) + "x" +
                          std::to_string(test.l) + "xf32>";
  const std::string of_bias = test.bias.empty() ? "" : ", " + bias;
  const std::string all[] = {q, k, v, bias};
  std::string types, values;
  for (char result : test.results) {
    types += (types.empty() ? "" : ", ") + all[result - '0'];
    values += std::string(values.empty() ? "" : ", ") + "%r#" + result;
  }
  std::string join;
  if (test.joined) {
    const auto shape = [&](int64_t heads, int64_t size, bool whole) {
      return "tensor<" + std::to_string(test.b) + "x" + std::to_string(test.l) +
             "x" +
             (whole ? std::to_string(heads * size)
                    : std::to_string(heads) + "x" + std::to_string(size)) +
             "x" + test.element + ">";
    };
    const int64_t heads[] = {test.n, test.g, test.g},
                  sizes[] = {test.h, test.h, test.hv};
    int64_t width = 0;
    values = types = "";
    for (int i = 0; i < 3; ++i) {
      const std::string number = std::to_string(i),
                        apart = shape(heads[i], sizes[i], false),
                        whole = shape(heads[i], sizes[i], true);
      join += " %t" + number + " = nn.transpose %r#" + number +
              " perm = [0, 2, 1, 3] : " + all[i] + " -> " + apart + " %w" +
              number + " = nn.reshape %t" + number + " : " + apart + " -> " +
              whole;
      values += (i == 0 ? "%w" : ", %w") + number;
      types += (i == 0 ? "" : ", ") + whole;
      width += heads[i] * sizes[i];
    }
    const std::string result = shape(width, 1, true);
    join += " %j = nn.concat " + values + " axis = 2 : (" + types + ") -> " +
            result;
    values = "%j";
    types = result;
  }
  const bool biased = !test.bias.empty(),
             wants_bias = llvm::StringRef(test.results).contains('3');
  return "func.func @k(%q: " + q + ", %k: " + k + ", %v: " + v + ", %y: " + y +
         ", %g: " + y + (biased ? ", %b: " + bias : "") +
         (test.first_head ? ", %f: tensor<i64>" : "") +
         (test.lse ? ", %e: " + lse : "") + ") -> (" + types +
         ") { %r:" + (wants_bias ? "4" : "3") +
         " = nn.attention_grad %q, %k, %v, %y, %g" + (biased ? ", %b" : "") +
         (test.lse ? " lse(%e)" : "") +
         (test.first_head ? " first_head(%f)" : "") + " scale = 3.0e-1 " +
         test.attributes + " : (" + q + ", " + k + ", " + v + ", " + y + ", " +
         y + of_bias + (test.lse ? ", " + lse : "") +
         (test.first_head ? ", tensor<i64>" : "") + ") -> (" + q + ", " + k +
         ", " + v + (wants_bias ? of_bias : "") + ")" + join + " return " +
         values + " : " + types + " }";
}

// With a log-sum-exp around 0, weights would be large.
inline void raiseLse(std::vector<nn::Tensor>& arguments) {
  nn::Tensor& lse = arguments.back();
  for (int64_t i = 0; i < lse.size(); ++i)
    lse.setFloat(i, 10 + lse.getFloat(i));
}

// Compares the kernel of the case with the interpreter.
inline std::string differenceOf(CompiledKernel& kernel, const Case& test) {
  return kernel.difference(test.tolerance, test.tolerance, 1,
                           [&](std::vector<nn::Tensor>& arguments) {
                             if (test.lse) raiseLse(arguments);
                           });
}

// The gradient of queries that are the sum of two tensors, with half the scale.
// They have no boxes.
inline std::string textOfSums(const Case& test) {
  std::string text = textOf(test);
  const size_t type = text.find("%q: ") + 4;
  const std::string of_q = text.substr(type, text.find(',') - type);
  text.replace(type - 4, 3, "%x:");
  text.replace(text.find("3.0e-1"), 6, "1.5e-1");
  return text.insert(text.find("{ ") + 2,
                     "%q = arith.addf %x, %x : " + of_q + " ");
}

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_ATTENTION_GRAD_CASES_H_
