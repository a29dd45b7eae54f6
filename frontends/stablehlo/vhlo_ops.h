// Operations of the portable dialects, `vhlo` and `sdy`, and their properties.
#ifndef PARTITA_FRONTENDS_STABLEHLO_VHLO_OPS_H_
#define PARTITA_FRONTENDS_STABLEHLO_VHLO_OPS_H_

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace partita::stablehlo {

// An operation with properties. Bytecode holds them in the order of their
// names, which `properties` lists, separated by spaces; "?" marks one that may
// be absent.
struct PortableOp {
  llvm::StringLiteral name;  // "dot_general_v2"
  llvm::StringLiteral properties;
};

llvm::ArrayRef<PortableOp> vhloOps();
llvm::ArrayRef<PortableOp> sdyOps();

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_VHLO_OPS_H_
