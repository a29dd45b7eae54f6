// The table of operations.
#ifndef PARTITA_FRONTENDS_STABLEHLO_HANDLERS_H_
#define PARTITA_FRONTENDS_STABLEHLO_HANDLERS_H_

#include "frontends/stablehlo/op_context.h"

namespace partita::stablehlo {

// Returns result 0, or null if the handler has set its results by `out`.
using Handler = Val (*)(OpContext&);

// The handler of an operation by its short name; null if there is none.
Handler findHandler(llvm::StringRef name);

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_HANDLERS_H_
