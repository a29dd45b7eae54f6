// The table of operators.
#ifndef PARTITA_FRONTENDS_TORCH_HANDLERS_H_
#define PARTITA_FRONTENDS_TORCH_HANDLERS_H_

#include <string>

#include "frontends/torch/node_context.h"

namespace partita::torch {

struct Handler {
  llvm::StringRef op;         // "aten.add"
  llvm::StringRef overloads;  // "Tensor,Scalar"; "*": any
  // Returns result 0, or null if the handler has set its results by `out`.
  Val (*import)(NodeContext&);
  // Result 0 shares the memory of argument `self`.
  bool is_view = false;
  // For views: the value of `base` whose view is `value`.
  Val (*write)(NodeContext&, Val base, Val value) = nullptr;
};

// A target without "torch.ops.", its operator and overload. An operator that
// works in place has no last underscore, and `in_place` is true.
struct Target {
  std::string op, overload;
  bool in_place = false;
};
Target parseTarget(llvm::StringRef target);

// Null if there is none.
const Handler* findHandler(const Target& target);

}  // namespace partita::torch

#endif  // PARTITA_FRONTENDS_TORCH_HANDLERS_H_
