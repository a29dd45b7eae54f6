// Activations of experts written out in primitives.
#ifndef PARTITA_COMPILER_SIMPLIFY_ACTIVATION_MATCH_H_
#define PARTITA_COMPILER_SIMPLIFY_ACTIVATION_MATCH_H_

#include <optional>

#include "dialects/nn/dialect.h"

namespace partita::simplify {

struct Activated {
  nn::ExpertActivation activation;
  mlir::Value input;
};

// Matches an activation of `input`, which has the shape of `value`.
std::optional<Activated> matchActivation(mlir::Value value);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_ACTIVATION_MATCH_H_
