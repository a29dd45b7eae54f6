// Readers of the portable dialects' attributes and types, called by MLIR's
// bytecode reader. They return null after reporting an error.
#ifndef PARTITA_FRONTENDS_STABLEHLO_ATTRIBUTE_READERS_H_
#define PARTITA_FRONTENDS_STABLEHLO_ATTRIBUTE_READERS_H_

#include "mlir/Bytecode/BytecodeImplementation.h"

namespace partita::stablehlo {

mlir::Attribute readVhloAttribute(mlir::DialectBytecodeReader& reader);
mlir::Type readVhloType(mlir::DialectBytecodeReader& reader);
mlir::Attribute readSdyAttribute(mlir::DialectBytecodeReader& reader);

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_ATTRIBUTE_READERS_H_
