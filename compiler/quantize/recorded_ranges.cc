// A range is two buffers of one number each.
#include "compiler/quantize/recorded_ranges.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/quantize/fake_quantize.h"
#include "compiler/quantize/weight_file.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/base/range_names.h"
#include "runtime/base/status_macros.h"

namespace partita::quantize {

using absl::InvalidArgumentError;

absl::StatusOr<RecordedRanges> RecordedRanges::read(mlir::ModuleOp simulated,
                                                    const std::string& folder) {
  RecordedRanges ranges;
  auto main = simulated.lookupSymbol<mlir::func::FuncOp>("main");
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    const auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    const auto source = main.getArgAttrOfType<nn::FileAttr>(i, nn::kSourceAttr);
    if (!name || !source || !isRangeName(name.getValue())) continue;
    PARTITA_ASSIGN_OR_RETURN(const std::vector<float> numbers,
                             readFloats(source, folder));
    if (numbers.size() != 1)
      return InvalidArgumentError(absl::StrCat(
          name.str(), ": expected one number, found ", numbers.size()));
    ranges.ends_[name.str()] = numbers[0];
  }
  return ranges;
}

absl::StatusOr<std::vector<Calibration::Extremes>> RecordedRanges::measure(
    mlir::ModuleOp module, const std::vector<Weight>& weights) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<Extremes> extremes;
  for (const Activation& activation : findActivations(main, weights)) {
    const auto low = ends_.find(activation.name + base::kRangeLowSuffix),
               high = ends_.find(activation.name + base::kRangeHighSuffix);
    if (low == ends_.end() || high == ends_.end())
      return InvalidArgumentError(
          "--fake-quantize: expected a range of the input of " +
          activation.name +
          ", found none; give the options that the model was trained with");
    if (!std::isfinite(low->second) || !std::isfinite(high->second) ||
        !(low->second < high->second ||
          (low->second == high->second && low->second != 0)))
      return InvalidArgumentError(absl::StrCat(
          "--fake-quantize: expected a range of the input of ", activation.name,
          " that training has recorded, found ", low->second, " to ",
          high->second, "; train with --fake-quantize first"));
    // Training recorded no mean square.
    extremes.push_back({{double{low->second}},
                        {double{high->second}},
                        {std::numeric_limits<double>::quiet_NaN()}});
  }
  return extremes;
}

}  // namespace partita::quantize
