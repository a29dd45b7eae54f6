// The attention that a launch computes, if it computes one, so that a GPU's
// library may compute it instead.
#ifndef PARTITA_DIALECTS_EXEC_ATTENTION_H_
#define PARTITA_DIALECTS_EXEC_ATTENTION_H_

#include <cstdint>
#include <optional>

#include "mlir/IR/Operation.h"

namespace partita::exec {

// `Attention` of runtime/program/program.fbs, which defines the fields. The
// element type is that of q's operand.
struct Attention {
  // Strides and offset in elements. `operand` counts the launch's operands,
  // then its results.
  struct Tensor {
    int64_t operand = 0, offset = 0, batch = 0, head = 0, position = 0;
  };
  int64_t batch = 1, heads = 1, groups = 1, queries = 1, keys = 1, size = 1,
          value_size = 1;
  double scale = 1;
  bool causal = false;
  int64_t causal_offset = 0;
  Tensor q, k, v, out;
  int64_t lse = -1;
};

inline constexpr char kAttentionAttr[] = "exec.attention";

// Checks the attribute's form: on a launch, with all fields, and tensors in the
// launch's operands and results.
mlir::LogicalResult verifyAttention(mlir::Operation* op, mlir::Attribute value);

// Write and read the attribute `exec.attention` of a launch.
void setAttention(mlir::Operation* launch, const Attention& attention);
std::optional<Attention> attentionOf(mlir::Operation* launch);

}  // namespace partita::exec

#endif  // PARTITA_DIALECTS_EXEC_ATTENTION_H_
