// Names the dimensions of every value of a module, and reports the names.
#ifndef PARTITA_COMPILER_SHARDING_NAME_DIMENSIONS_H_
#define PARTITA_COMPILER_SHARDING_NAME_DIMENSIONS_H_

#include <set>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

struct NamedDims {
  std::string name;
  std::set<int64_t> sizes;  // of the segments with this name
  int64_t parameters = 0;   // number of parameters that it divides
  int64_t bytes = 0;        // total bytes of those parameters
  int64_t values = 0;       // number of operation results that it divides
  std::string example;      // "h.0.mlp.c_fc.weight [E, M]", or an input
};

struct NamingReport {
  std::vector<NamedDims> names;  // in the order B M N E L V H W X
  // Parameters without a named dimension, if they hold at least 1 % of all
  // bytes: "name [dims]", largest first.
  std::vector<std::string> unnamed;
  // Classes with two candidate names: "M, not E: h.0.mlp.c_fc.weight [E, M]".
  std::vector<std::string> ambiguous;
};

// Sets nn.dims on every argument and operation. `corrections` is
// "glob:dim=NAME;..." over the names of parameters and takes precedence. If the
// module already has names, for example because it was named and then
// differentiated, they are kept and spread to unnamed values; else names come
// from the model's structure. Fails with a diagnostic if a correction does not
// fit the model. Fills `report` unless it is null.
mlir::LogicalResult nameDimensions(mlir::ModuleOp module,
                                   const std::string& corrections,
                                   NamingReport* report = nullptr);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_NAME_DIMENSIONS_H_
