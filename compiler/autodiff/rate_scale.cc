// Parses item by item; refuses malformed items.
#include "compiler/autodiff/rate_scale.h"

#include <cmath>

namespace partita::autodiff {

mlir::FailureOr<llvm::SmallVector<RateScale>> parseRateScales(
    llvm::StringRef text,
    llvm::function_ref<mlir::InFlightDiagnostic()> error) {
  llvm::SmallVector<RateScale> scales;
  llvm::SmallVector<llvm::StringRef> items;
  text.split(items, ';', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef item : items) {
    auto [glob, number] = item.rsplit('=');
    double factor = 0;
    if (glob.empty() || number.trim().getAsDouble(factor) ||
        !std::isfinite(factor) || factor <= 0)
      return error() << "expected GLOB=FACTOR with a factor above 0, as "
                        "\"h.*=0.1\", found '"
                     << item << "'";
    scales.push_back({item.str(), nn::GlobList(glob.trim()), factor});
  }
  return scales;
}

}  // namespace partita::autodiff
