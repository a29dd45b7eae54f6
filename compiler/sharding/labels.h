// The names of a value's dimensions, put together from those of their segments.
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

  // A name that a value has twice is primed where it comes second: by order,
  // but dimensions that products sum over come first, so that a matrix from E
  // to E is [E', E] where it is stored by output.
  llvm::SmallVector<Dim> of(mlir::Value value) const;

 private:
  const DimClasses& classes_;
  const Names& names_;
};

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_LABELS_H_
