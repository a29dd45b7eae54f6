// Learning rates of groups of parameters.
#ifndef PARTITA_COMPILER_AUTODIFF_RATE_SCALE_H_
#define PARTITA_COMPILER_AUTODIFF_RATE_SCALE_H_

#include <string>

#include "compiler/autodiff/glob_list.h"
#include "mlir/IR/Diagnostics.h"

namespace partita::autodiff {

struct RateScale {
  std::string text;  // as it was given
  GlobList names;
  double factor = 1;  // above 0
};

// "GLOB=FACTOR", separated by ';': of several that match a name the last one
// counts. Fails with a diagnostic of `error`.
mlir::FailureOr<llvm::SmallVector<RateScale>> parseRateScales(
    llvm::StringRef text, llvm::function_ref<mlir::InFlightDiagnostic()> error);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_RATE_SCALE_H_
