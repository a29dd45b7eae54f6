// Learning rates of groups of parameters.
#ifndef PARTITA_COMPILER_AUTODIFF_RATE_SCALE_H_
#define PARTITA_COMPILER_AUTODIFF_RATE_SCALE_H_

#include <string>

#include "dialects/nn/glob_list.h"
#include "mlir/IR/Diagnostics.h"

namespace partita::autodiff {

struct RateScale {
  std::string text;  // as the user wrote it
  nn::GlobList names;
  double factor = 1;  // above 0
};

// Parses "GLOB=FACTOR", separated by ';'. If several match a name, the last one
// applies. Fails with a diagnostic from `error`.
mlir::FailureOr<llvm::SmallVector<RateScale>> parseRateScales(
    llvm::StringRef text, llvm::function_ref<mlir::InFlightDiagnostic()> error);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_RATE_SCALE_H_
