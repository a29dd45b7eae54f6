// Numbers of shapes. They are known when the model is imported, since shapes
// are static; checks of them do nothing.
#include "frontends/torch/ops/ops.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita::torch {

Val importNothing(NodeContext&) { return {}; }

Val importSymSize(NodeContext& n) {
  Val x = n.tensor("self");
  const int64_t axis = n.op == "aten.sym_numel" ? 0 : n.axis("dim", x.rank());
  if (n.failed()) return {};
  n.outInt(n.op == "aten.sym_numel" ? x.size() : x.dim(axis));
  return {};
}

Val importSymArithmetic(NodeContext& n) {
  const llvm::StringRef name = n.op;
  int64_t a = n.integerAt(0), result = 0;
  if (name == "_operator.neg" || name == "torch.sym_not" ||
      name == "torch.sym_int" || name == "math.trunc" ||
      name == "_operator.not_") {
    if (n.failed()) return {};
    const bool negates = name == "_operator.neg";
    if (negates && __builtin_sub_overflow(int64_t{0}, a, &a))
      return n.error("a number overflows");
    const bool inverts = name == "torch.sym_not" || name == "_operator.not_";
    n.outInt(inverts ? a == 0 : a);
    return {};
  }
  const int64_t b = n.integerAt(1);
  if (n.failed()) return {};
  bool overflows = false;
  if (name == "_operator.add") {
    overflows = __builtin_add_overflow(a, b, &result);
  } else if (name == "_operator.sub") {
    overflows = __builtin_sub_overflow(a, b, &result);
  } else if (name == "_operator.mul") {
    overflows = __builtin_mul_overflow(a, b, &result);
  } else if (name == "_operator.floordiv" || name == "_operator.mod") {
    overflows = b == 0 || (a == INT64_MIN && b == -1);
    if (overflows) return n.error("a division by zero, or one that overflows");
    const int64_t floor = a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
    result = name == "_operator.floordiv" ? floor : a - floor * b;
  } else {
    result = llvm::StringSwitch<int64_t>(name)
                 .Case("torch.sym_max", std::max(a, b))
                 .Case("torch.sym_min", std::min(a, b))
                 .Case("_operator.eq", a == b)
                 .Case("_operator.ne", a != b)
                 .Case("_operator.lt", a < b)
                 .Case("_operator.le", a <= b)
                 .Case("_operator.gt", a > b)
                 .Case("_operator.ge", a >= b)
                 .Case("_operator.and_", a & b)
                 .Default(a | b);
  }
  if (overflows) return n.error("a number overflows");
  n.outInt(result);
  return {};
}

}  // namespace partita::torch
