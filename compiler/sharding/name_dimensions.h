// Names of dimensions on every value of a module, and a table of them.
#ifndef PARTITA_COMPILER_SHARDING_NAME_DIMENSIONS_H_
#define PARTITA_COMPILER_SHARDING_NAME_DIMENSIONS_H_

#include <set>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

struct NamedDims {
  std::string name;
  std::set<int64_t> sizes;  // of the segments of that name
  int64_t parameters = 0;   // that it divides
  int64_t bytes = 0;        // of those parameters
  int64_t values = 0;       // results of operations that it divides
  std::string example;      // "h.0.mlp.c_fc.weight [E, M]", or an input
};

struct NamingReport {
  std::vector<NamedDims> names;  // in the order B M N E L V H W X
  // Parameters that no name divides and that are a hundredth of all or more, as
  // "name [dims]", the largest first.
  std::vector<std::string> unnamed;
  // What the structure says twice: "M, not E: h.0.mlp.c_fc.weight [E, M]".
  std::vector<std::string> ambiguous;
};

// Sets nn.dims everywhere. `corrections` is "glob:dim=NAME;..." over the names
// of parameters and outranks all else. Where the module has names already, as a
// model that was named and then differentiated, those hold and spread to what
// has none; else the structure says them. Fails with a diagnostic where a
// correction does not fit the model. Fills `report` if it is not null.
mlir::LogicalResult nameDimensions(mlir::ModuleOp module,
                                   const std::string& corrections,
                                   NamingReport* report = nullptr);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_NAME_DIMENSIONS_H_
