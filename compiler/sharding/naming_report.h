// Reports the dimension names of a module for `partita inspect`.
#ifndef PARTITA_COMPILER_SHARDING_NAMING_REPORT_H_
#define PARTITA_COMPILER_SHARDING_NAMING_REPORT_H_

#include "compiler/sharding/find_names.h"
#include "compiler/sharding/labels.h"
#include "compiler/sharding/name_dimensions.h"

namespace partita::sharding {

NamingReport reportNames(mlir::ModuleOp module, const DimClasses& classes,
                         const Names& names, const Labels& labels);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_NAMING_REPORT_H_
