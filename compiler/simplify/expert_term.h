// One expert of a mixture that a program computes expert by expert: a weight
// per row, zero for rows that do not choose the expert, times an MLP of the
// row.
#ifndef PARTITA_COMPILER_SIMPLIFY_EXPERT_TERM_H_
#define PARTITA_COMPILER_SIMPLIFY_EXPERT_TERM_H_

#include <cstdint>
#include <optional>

#include "dialects/nn/dialect.h"

namespace partita::simplify {

// x times a matrix, plus a bias or none.
struct Linear {
  mlir::Value matrix;  // [out, in], or [in, out] if `is_transposed`
  bool is_transposed = false;
  // The layer's outputs: `count` of the product's, from `first`.
  int64_t first = 0, count = 0;
  mlir::Value bias;  // holds [out]; null if there is none
};

struct ExpertTerm {
  int64_t expert = 0;
  int64_t rows = 0, choices = 0;
  mlir::Value x;             // holds [rows, in]
  mlir::Value ids, weights;  // hold [rows, choices]
  std::optional<Linear> gate;
  Linear up, down;
  nn::ExpertActivation activation{};
};

// Matches a summand [..., out] as
//   mlp(x) * (sum over j of weights[j] where ids[j] = expert), or
//   sum over j of (mlp(x) * weights[j] where ids[j] = expert, else 0).
std::optional<ExpertTerm> matchExpertTerm(mlir::Value summand);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_EXPERT_TERM_H_
