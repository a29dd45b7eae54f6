// Places of the optional operands of nn.experts and nn.experts_grad.
#ifndef PARTITA_DIALECTS_NN_EXPERTS_H_
#define PARTITA_DIALECTS_NN_EXPERTS_H_

#include <type_traits>

#include "dialects/nn/dialect.h"

namespace partita::nn {

// Operand numbers of the experts' parameters; -1 for an absent one.
struct ExpertParameters {
  int first;  // number of the first parameter
  int gate, up, down, gate_bias, up_bias, down_bias;

  // Op is ExpertsOp or ExpertsGradOp.
  template <typename Op>
  explicit ExpertParameters(Op op)
      : first(std::is_same_v<Op, ExpertsGradOp> ? 4 : 3) {
    int next = first;
    const auto number = [&next](mlir::Value operand) {
      return operand ? next++ : -1;
    };
    gate = number(op.getGate());
    up = number(op.getUp());
    down = number(op.getDown());
    gate_bias = number(op.getGateBias());
    up_bias = number(op.getUpBias());
    down_bias = number(op.getDownBias());
  }

  // The result of nn.experts_grad that is the gradient of this parameter.
  int gradOf(int parameter) const { return parameter - first + 2; }
};

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_EXPERTS_H_
