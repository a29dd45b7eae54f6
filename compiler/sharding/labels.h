// Builds the names of a value's dimensions from the names of their segments.
#ifndef PARTITA_COMPILER_SHARDING_LABELS_H_
#define PARTITA_COMPILER_SHARDING_LABELS_H_

#include "compiler/sharding/dim_classes.h"
#include "compiler/sharding/dims.h"
#include "compiler/sharding/find_names.h"

namespace partita::sharding {

class Labels {
 public:
  Labels(const DimClasses& classes, const Names& names)
      : classes_(classes), names_(names) {}

  // If a name occurs twice in a value, the second occurrence gets a prime.
  // Dimensions that products sum over count as first: a matrix from E to E is
  // [E', E] if it is stored by output.
  llvm::SmallVector<Dim> of(mlir::Value value) const;

 private:
  const DimClasses& classes_;
  const Names& names_;
};

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_LABELS_H_
