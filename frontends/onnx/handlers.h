// The table of operators: the handler of each operator and opset range.
#ifndef PARTITA_FRONTENDS_ONNX_HANDLERS_H_
#define PARTITA_FRONTENDS_ONNX_HANDLERS_H_

#include <cstdint>

#include "frontends/onnx/node_context.h"

namespace partita::onnx {

inline constexpr int64_t kOldestOpset = 6;
inline constexpr int64_t kNewestOpset = 27;

struct Handler {
  llvm::StringRef op_type;
  int64_t since, until;  // opset range, inclusive
  unsigned min_inputs;
  LogicalResult (*import)(NodeContext&);
  bool takes_sequences = false;
};

// Returns the handler of an operator of the default domain or of com.microsoft,
// or null if there is none for this opset.
const Handler* findHandler(llvm::StringRef op_type, llvm::StringRef domain,
                           int64_t opset);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_HANDLERS_H_
