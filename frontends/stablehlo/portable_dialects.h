// The dialects `vhlo` (StableHLO's portable form) and `sdy` (Shardy), as far as
// MLIR's bytecode reader needs them. Types and attributes become builtin ones,
// and operations keep their attributes by name:
//
//   vhlo types          builtin types; unsigned integers keep their sign
//   token               tuple<>
//   vhlo enums          i32 attributes with the number of the case
//   vhlo arrays, dicts  array and dictionary attributes
//   vhlo tensors        dense attributes
//   sdy attributes      dictionaries, as shardings.h reads them
//
// Operations have no verifiers. Read a module without verification, and check
// what you use.
#ifndef PARTITA_FRONTENDS_STABLEHLO_PORTABLE_DIALECTS_H_
#define PARTITA_FRONTENDS_STABLEHLO_PORTABLE_DIALECTS_H_

#include "mlir/IR/MLIRContext.h"

namespace partita::stablehlo {

// Loads both dialects.
void loadPortableDialects(mlir::MLIRContext* context);

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_PORTABLE_DIALECTS_H_
