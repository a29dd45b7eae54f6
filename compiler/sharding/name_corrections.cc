// Every diagnostic says which input would be correct.
#include "compiler/sharding/name_corrections.h"

#include "compiler/plan/glob.h"
#include "compiler/sharding/dims.h"
#include "compiler/sharding/near_names.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {
namespace {

using llvm::StringRef;
using mlir::func::FuncOp;

std::string nameOf(FuncOp main, unsigned argument) {
  const auto name =
      main.getArgAttrOfType<mlir::StringAttr>(argument, nn::kNameAttr);
  return name ? name.str() : "";
}

mlir::LogicalResult correctName(FuncOp main, const DimClasses& classes,
                                StringRef correction, Names& names) {
  auto [place, name] = correction.rsplit('=');
  auto [pattern, dim_text] = place.rsplit(':');
  pattern = pattern.trim();
  name = name.trim();
  int64_t dim = 0;
  if (pattern.empty() || dim_text.trim().getAsInteger(10, dim) || name.empty())
    return main.emitError(
               "expected a name as 'parameter:dimension=NAME', "
               "found '")
           << correction << "'";
  if (!llvm::is_contained(kDimNames, name))
    return main.emitError("expected one of the names ")
           << llvm::join(std::begin(kDimNames), std::end(kDimNames), ", ")
           << " in '" << correction << "', found '" << name << "'";
  bool found = false;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    const std::string parameter = nameOf(main, i);
    if (parameter.empty() || !plan::MatchesGlob(pattern.str(), parameter))
      continue;
    found = true;
    const int64_t rank =
        mlir::cast<mlir::RankedTensorType>(main.getArgumentTypes()[i])
            .getRank();
    if (dim < 0 || dim >= rank)
      return main.emitError("expected a dimension from 0 to ")
             << rank - 1 << " of '" << parameter << "', which is "
             << main.getArgumentTypes()[i] << ", found " << dim << " in '"
             << correction << "'";
    const std::vector<int> segments =
        classes.segmentsOf(main.getArgument(i), dim);
    if (segments.empty()) continue;
    const std::string before = names.of(segments.front());
    if (!before.empty() && before != name)
      return main.emitError("expected one name for dimension ")
             << dim << " of '" << parameter << "' and what the model ties to "
             << "it, found '" << name << "' in '" << correction << "' and '"
             << before << "' in one before; leave out one of the two";
    names.set(segments.front(), name.str());
  }
  if (!found)
    return main.emitError("expected a parameter that matches '")
           << pattern << "', found none; similar names are "
           << nearNames({pattern.str()}, argumentNames(main));
  return mlir::success();
}

}  // namespace

mlir::LogicalResult correctNames(mlir::ModuleOp module,
                                 const DimClasses& classes,
                                 StringRef corrections, Names& names) {
  auto main = module.lookupSymbol<FuncOp>("main");
  llvm::SmallVector<StringRef> list;
  corrections.split(list, ';', -1, /*KeepEmpty=*/false);
  for (StringRef correction : list) {
    correction = correction.trim();
    if (!correction.empty() &&
        failed(correctName(main, classes, correction, names)))
      return mlir::failure();
  }
  return mlir::success();
}

}  // namespace partita::sharding
