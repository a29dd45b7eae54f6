// Passes that make one device's program; see passes.td.
#ifndef PARTITA_COMPILER_PARTITION_PASSES_H_
#define PARTITA_COMPILER_PARTITION_PASSES_H_

#include <memory>

#include "compiler/core/buckets.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"

namespace partita::partition {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/partition/passes.h.inc"

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_PASSES_H_
