// Classes, names for them, and the attribute that carries the names on; see
// passes.td.
#include "compiler/sharding/name_dimensions.h"

#include <map>

#include "compiler/sharding/dim_classes.h"
#include "compiler/sharding/dims.h"
#include "compiler/sharding/find_names.h"
#include "compiler/sharding/name_corrections.h"
#include "compiler/sharding/passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::sharding {

#define GEN_PASS_DEF_NAMEDIMENSIONSPASS
#include "compiler/sharding/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

class Labels {
 public:
  Labels(const DimClasses& classes, const Names& names)
      : classes_(classes), names_(names) {}

  SmallVector<Dim> of(Value value) const {
    SmallVector<Dim> dims;
    auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
    const int64_t rank = type ? type.getRank() : 0;
    dims.resize(rank);
    std::map<std::string, int> met;
    for (int64_t dim : order(value, rank)) dims[dim] = label(value, dim, met);
    return dims;
  }

 private:
  // The order in which names are given out: what a product sums over first, so
  // that a matrix from E to E is [E', E] where it is stored by output.
  static SmallVector<int64_t> order(Value value, int64_t rank) {
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    if (!mlir::isa<mlir::BlockArgument>(value)) return dims;
    for (mlir::OpOperand& use : value.getUses()) {
      if (auto call = mlir::dyn_cast<mlir::func::CallOp>(use.getOwner())) {
        auto callee = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
            call, call.getCalleeAttr());
        if (callee && !callee.isExternal())
          return order(callee.getArgument(use.getOperandNumber()), rank);
      }
      const SmallVector<int64_t> summed = summedBy(use);
      if (summed.empty()) continue;
      SmallVector<int64_t> others;
      for (int64_t dim : dims)
        if (!llvm::is_contained(summed, dim)) others.push_back(dim);
      dims = summed;
      dims.append(others);
      break;
    }
    return dims;
  }

  static SmallVector<int64_t> summedBy(mlir::OpOperand& use) {
    if (auto dot = mlir::dyn_cast<nn::DotGeneralOp>(use.getOwner()))
      return llvm::to_vector(use.getOperandNumber() == 0
                                 ? dot.getLhsContract()
                                 : dot.getRhsContract());
    if (mlir::isa<nn::ConvOp>(use.getOwner()) && use.getOperandNumber() == 1)
      return {1};
    return {};
  }

  Dim label(Value value, int64_t dim, std::map<std::string, int>& met) const {
    auto primed = [&](const std::string& name) {
      return name + std::string(met[name]++, '\'');
    };
    Dim result;
    const std::vector<int> segments = classes_.segmentsOf(value, dim);
    if (auto role = names_.roles.find(segments); role != names_.roles.end())
      result.role = primed(role->second);
    std::string previous;
    for (int segment : segments) {
      const std::string name = names_.of(segment);
      const int64_t size = classes_.sizeOf(segment);
      // Key-value heads and the queries of each are both heads.
      if (name == "N" && previous == "N")
        result.segments.back().size *= size;
      else
        result.segments.push_back({name.empty() ? name : primed(name), size});
      previous = name;
    }
    return result;
  }

  const DimClasses& classes_;
  const Names& names_;
};

mlir::ArrayAttr attributeOf(mlir::MLIRContext* context,
                            llvm::ArrayRef<Dim> dims) {
  mlir::Builder builder(context);
  SmallVector<mlir::Attribute> texts;
  for (const Dim& dim : dims)
    texts.push_back(builder.getStringAttr(print(dim)));
  return builder.getArrayAttr(texts);
}

void setAttributes(mlir::ModuleOp module, const Labels& labels) {
  mlir::MLIRContext* context = module.getContext();
  for (FuncOp function : module.getOps<FuncOp>()) {
    if (function.isExternal()) continue;
    for (mlir::BlockArgument argument : function.getArguments())
      function.setArgAttr(argument.getArgNumber(), kDimsAttr,
                          attributeOf(context, labels.of(argument)));
    for (Operation& op : function.front()) {
      if (op.getNumResults() == 0) continue;
      SmallVector<mlir::Attribute> results;
      for (Value result : op.getResults())
        results.push_back(attributeOf(context, labels.of(result)));
      op.setAttr(kDimsAttr, mlir::ArrayAttr::get(context, results));
    }
  }
}

std::string textOf(llvm::ArrayRef<Dim> dims) {
  return "[" +
         llvm::join(
             llvm::map_range(dims, [](const Dim& dim) { return print(dim); }),
             ", ") +
         "]";
}

// Gives each use of a constant that is one number everywhere its own:
// dimensions that have no more in common than 1.0 are not to be tied by it.
void separateConstants(mlir::ModuleOp module) {
  SmallVector<mlir::arith::ConstantOp> constants;
  module.walk([&](mlir::arith::ConstantOp op) {
    if (mlir::isa<mlir::SplatElementsAttr>(op.getValue()))
      constants.push_back(op);
  });
  for (mlir::arith::ConstantOp op : constants) {
    SmallVector<mlir::OpOperand*> uses;
    for (mlir::OpOperand& use : op->getUses()) uses.push_back(&use);
    for (mlir::OpOperand* use : llvm::drop_begin(uses))
      use->set(mlir::OpBuilder(op).clone(*op)->getResult(0));
  }
}

// Collects what a person wants to know of the names.
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

  void collectParameters() {
    auto main = module_.lookupSymbol<FuncOp>("main");
    for (mlir::BlockArgument argument : main.getArguments()) {
      const unsigned index = argument.getArgNumber();
      if (!main.getArgAttr(index, nn::kSourceAttr)) continue;
      auto type = mlir::cast<mlir::RankedTensorType>(argument.getType());
      auto name = main.getArgAttrOfType<mlir::StringAttr>(index, nn::kNameAttr);
      SmallVector<Dim> dims = labels_.of(argument);
      const int64_t bytes =
          (type.getNumElements() * type.getElementTypeBitWidth() + 7) / 8;
      std::string text =
          (name ? name.str() : "argument " + std::to_string(index)) + " " +
          textOf(dims);
      total_bytes_ += bytes;
      parameters_.push_back(
          {argument, bytes, std::move(dims), std::move(text)});
    }
    std::stable_sort(parameters_.begin(), parameters_.end(),
                     [](const Parameter& a, const Parameter& b) {
                       return a.bytes > b.bytes;
                     });
  }

  static bool isDivided(const Parameter& parameter) {
    return llvm::any_of(kDimNames, [&](const char* name) {
      return isDividedBy(parameter.dims, name);
    });
  }
  static bool isDividedBy(llvm::ArrayRef<Dim> dims, llvm::StringRef name) {
    return llvm::any_of(dims,
                        [&](const Dim& dim) { return dim.isNamed(name); });
  }

  void addParameters(NamedDims& entry) const {
    for (const Parameter& parameter : parameters_) {
      if (!isDividedBy(parameter.dims, entry.name)) continue;
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
          if (!isDividedBy(dims, entry.name)) continue;
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

struct NameDimensionsPass
    : public impl::NameDimensionsPassBase<NameDimensionsPass> {
  using NameDimensionsPassBase::NameDimensionsPassBase;

  void runOnOperation() override {
    if (failed(nameDimensions(getOperation(), names))) signalPassFailure();
  }
};

}  // namespace

mlir::FailureOr<NamingReport> nameDimensions(mlir::ModuleOp module,
                                             const std::string& corrections) {
  auto main = module.lookupSymbol<FuncOp>("main");
  if (!main || main.isExternal())
    return module.emitError(
        "expected a function @main with a body, found none");
  separateConstants(module);
  const DimClasses classes(module);
  Names names;
  if (failed(correctNames(module, classes, corrections, names)))
    return mlir::failure();
  findNames(module, classes, names);
  const Labels labels(classes, names);
  setAttributes(module, labels);
  return Reporter(module, labels).report(classes, names);
}

}  // namespace partita::sharding
