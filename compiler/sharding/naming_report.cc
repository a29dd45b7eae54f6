// Counts parameters and values per name.
#include "compiler/sharding/naming_report.h"

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {
namespace {

using llvm::SmallVector;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

std::string textOf(llvm::ArrayRef<Dim> dims) {
  return "[" +
         llvm::join(
             llvm::map_range(dims, [](const Dim& dim) { return print(dim); }),
             ", ") +
         "]";
}

// Collects the report.
class Reporter {
 public:
  Reporter(mlir::ModuleOp module, const Labels& labels)
      : module_(module), labels_(labels) {}

  NamingReport report(const DimClasses& classes, const Names& names) {
    collectParameters();
    NamingReport report;
    for (const char* name : kDimNames) {
      NamedDims entry;
      entry.name = name;
      addParameters(entry);
      addValues(entry);
      if (entry.example.empty()) entry.example = inputDividedBy(name);
      if (entry.values + entry.parameters > 0) report.names.push_back(entry);
    }
    for (const Parameter& parameter : parameters_)
      if (parameter.bytes * 100 >= total_bytes_ && !isDivided(parameter))
        report.unnamed.push_back(parameter.text);
    for (const Names::Ambiguity& ambiguity : names.ambiguities)
      addAmbiguity(classes, ambiguity, report);
    return report;
  }

 private:
  struct Parameter {
    mlir::BlockArgument value;
    int64_t bytes;
    SmallVector<Dim> dims;
    std::string text;
  };

  static std::string nameOf(mlir::BlockArgument argument) {
    auto main = mlir::cast<FuncOp>(argument.getOwner()->getParentOp());
    auto name = main.getArgAttrOfType<mlir::StringAttr>(argument.getArgNumber(),
                                                        nn::kNameAttr);
    return name ? name.str()
                : "argument " + std::to_string(argument.getArgNumber());
  }

  std::string inputDividedBy(llvm::StringRef name) {
    for (mlir::BlockArgument argument :
         module_.lookupSymbol<FuncOp>("main").getArguments()) {
      const SmallVector<Dim> dims = labels_.of(argument);
      if (hasDimension(dims, name))
        return nameOf(argument) + " " + textOf(dims);
    }
    return "";
  }

  void collectParameters() {
    auto main = module_.lookupSymbol<FuncOp>("main");
    for (mlir::BlockArgument argument : main.getArguments()) {
      const unsigned index = argument.getArgNumber();
      if (!main.getArgAttr(index, nn::kSourceAttr)) continue;
      auto type = mlir::cast<mlir::RankedTensorType>(argument.getType());
      SmallVector<Dim> dims = labels_.of(argument);
      const int64_t bytes =
          (type.getNumElements() * type.getElementTypeBitWidth() + 7) / 8;
      std::string text = nameOf(argument) + " " + textOf(dims);
      total_bytes_ += bytes;
      parameters_.push_back(
          {argument, bytes, std::move(dims), std::move(text)});
    }
    llvm::sort(parameters_, [](const Parameter& a, const Parameter& b) {
      return a.bytes != b.bytes
                 ? a.bytes > b.bytes
                 : a.value.getArgNumber() < b.value.getArgNumber();
    });
  }

  static bool isDivided(const Parameter& parameter) {
    return llvm::any_of(kDimNames, [&](const char* name) {
      return hasDimension(parameter.dims, name);
    });
  }
  static bool hasDimension(llvm::ArrayRef<Dim> dims, llvm::StringRef name) {
    return llvm::any_of(dims,
                        [&](const Dim& dim) { return dim.isNamed(name); });
  }

  void addParameters(NamedDims& entry) const {
    for (const Parameter& parameter : parameters_) {
      if (!hasDimension(parameter.dims, entry.name)) continue;
      ++entry.parameters;
      entry.bytes += parameter.bytes;
      if (entry.example.empty()) entry.example = parameter.text;
      addSizes(parameter.dims, entry);
    }
  }

  void addValues(NamedDims& entry) {
    for (FuncOp function : module_.getOps<FuncOp>()) {
      if (function.isExternal()) continue;
      for (Operation& op : function.front())
        for (Value result : op.getResults()) {
          const SmallVector<Dim> dims = labels_.of(result);
          if (!hasDimension(dims, entry.name)) continue;
          ++entry.values;
          addSizes(dims, entry);
        }
    }
  }

  static void addSizes(llvm::ArrayRef<Dim> dims, NamedDims& entry) {
    for (const Dim& dim : dims) {
      if (dim.segments.empty()) continue;
      int64_t whole = 1;
      for (const DimSegment& segment : dim.segments) whole *= segment.size;
      if (dim.segments.front().name == entry.name)
        entry.sizes.insert(dim.segments.front().size);
      else if (dim.role == entry.name)
        entry.sizes.insert(whole);
    }
  }

  void addAmbiguity(const DimClasses& classes,
                    const Names::Ambiguity& ambiguity,
                    NamingReport& report) const {
    if (ambiguity.name.empty() || ambiguity.other.empty()) return;
    for (const Parameter& parameter : parameters_)
      for (size_t dim = 0; dim < parameter.dims.size(); ++dim)
        if (llvm::is_contained(classes.segmentsOf(parameter.value, dim),
                               ambiguity.segment)) {
          const std::string text = ambiguity.name + ", not " + ambiguity.other +
                                   ": " + parameter.text;
          if (!llvm::is_contained(report.ambiguous, text))
            report.ambiguous.push_back(text);
          return;
        }
  }

  mlir::ModuleOp module_;
  const Labels& labels_;
  std::vector<Parameter> parameters_;
  int64_t total_bytes_ = 0;
};

}  // namespace

NamingReport reportNames(mlir::ModuleOp module, const DimClasses& classes,
                         const Names& names, const Labels& labels) {
  return Reporter(module, labels).report(classes, names);
}

}  // namespace partita::sharding
