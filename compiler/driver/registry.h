// The dialects, interfaces and passes that Partita's tools know.
#ifndef PARTITA_COMPILER_DRIVER_REGISTRY_H_
#define PARTITA_COMPILER_DRIVER_REGISTRY_H_

#include "mlir/IR/DialectRegistry.h"

namespace partita::driver {

// Everything a Partita module may contain, with the models that give upstream
// operations our interfaces.
void registerDialects(mlir::DialectRegistry& registry);

// Every --partita-... pass, for partita-opt.
void registerPasses();

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_REGISTRY_H_
