// Names the dimensions of a copy of a model, and shows them.
#include "compiler/driver/inspect/inspect_dims.h"

#include "compiler/driver/compilation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/base/quantity.h"

namespace partita::driver {

using llvm::json::Array;
using llvm::json::Object;
using sharding::NamedDims;
using sharding::NamingReport;

mlir::FailureOr<NamingReport> inspectDims(mlir::ModuleOp module,
                                          const std::string& corrections) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  if (!main || main.isExternal()) return NamingReport();
  Compilation copy(mlir::OwningOpRef<mlir::ModuleOp>(module.clone()),
                   optionsToJudge(plan::Plan(), /*train=*/nullptr));
  NamingReport report;
  if (failed(copy.runTo(Milestone::kExposed)) ||
      failed(sharding::nameDimensions(copy.module(), corrections, &report)))
    return mlir::failure();
  return report;
}

Object toJson(const NamingReport& report) {
  Array names;
  for (const NamedDims& dims : report.names)
    names.push_back(Object{{"name", dims.name},
                           {"sizes", Array(dims.sizes)},
                           {"parameters", dims.parameters},
                           {"parameter_bytes", dims.bytes},
                           {"values", dims.values},
                           {"example", dims.example}});
  return Object{{"names", std::move(names)},
                {"unnamed", Array(report.unnamed)},
                {"ambiguous", Array(report.ambiguous)}};
}

void printDims(const NamingReport& report, llvm::raw_ostream& stream) {
  if (report.names.empty()) return;
  stream << "dimensions:\n"
         << llvm::formatv("  {0,-5}{1,-24}{2,10}{3,12}{4,8}  {5}\n", "name",
                          "sizes", "parameters", "in all", "values",
                          "for example");
  for (const NamedDims& dims : report.names)
    stream << llvm::formatv(
        "  {0,-5}{1,-24}{2,10}{3,12}{4,8}  {5}\n", dims.name,
        llvm::join(
            llvm::map_range(dims.sizes,
                            [](int64_t size) { return std::to_string(size); }),
            " "),
        dims.parameters, base::FormatBytes(dims.bytes), dims.values,
        dims.example);
  for (const std::string& parameter : report.unnamed)
    stream << "no name divides " << parameter << "\n";
  for (const std::string& text : report.ambiguous)
    stream << "ambiguous: " << text << "\n";
}

}  // namespace partita::driver
