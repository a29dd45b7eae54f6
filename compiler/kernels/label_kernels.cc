// Names kernels by what they compute and where; see passes.td.
#include <string>
#include <vector>

#include "compiler/core/module_paths.h"
#include "compiler/kernels/layers.h"
#include "compiler/kernels/passes.h"
#include "dialects/exec/labels.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/CastInterfaces.h"

namespace partita::kernels {

#define GEN_PASS_DEF_LABELKERNELSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using mlir::Operation;
using mlir::func::FuncOp;
using Words = std::vector<std::string>;

constexpr size_t kMostWords = 4;

// True for operations that move, make or convert data but compute nothing.
bool isPlumbing(Operation& op) {
  return llvm::isa<nn::ReshapeOp, nn::BroadcastOp, nn::TransposeOp, nn::SliceOp,
                   nn::PadOp, nn::ConcatOp, nn::IotaOp, mlir::CastOpInterface>(
             op) ||
         op.hasTrait<mlir::OpTrait::ConstantLike>();
}

// Returns the name of an operation without its dialect and element type.
std::string wordOf(Operation& op) {
  if (auto reduce = llvm::dyn_cast<nn::ReduceOp>(op))
    return ("reduce_" + nn::stringifyReduceKind(reduce.getKind())).str();
  if (llvm::isa<mlir::CastOpInterface>(op)) return "convert";
  llvm::StringRef word = op.getName().stripDialect();
  if (!llvm::isa<mlir::arith::ArithDialect>(op.getDialect())) return word.str();
  return llvm::StringSwitch<llvm::StringRef>(word)
      .Cases({"maximumf", "maxnumf", "maxsi", "maxui"}, "max")
      .Cases({"minimumf", "minnumf", "minsi", "minui"}, "min")
      .Cases({"divf", "divsi", "divui"}, "div")
      .Cases({"remf", "remsi", "remui"}, "rem")
      .Cases({"cmpf", "cmpi"}, "compare")
      .Cases({"shli", "shrsi", "shrui"}, "shift")
      .Cases({"select", "constant"}, word)
      .Default(word.drop_back())  // addf, addi
      .str();
}

// Returns the distinct operations of a kernel in order, as in
// "layer_norm+add".
std::string operationsOf(FuncOp kernel) {
  Words computed, moved;
  for (Operation& op : kernel.front().without_terminator()) {
    Words& words = isPlumbing(op) ? moved : computed;
    const std::string word = wordOf(op);
    if (!llvm::is_contained(words, word)) words.push_back(word);
  }
  for (const char* silent : {"constant", "reshape"})
    if (moved.size() > 1) llvm::erase(moved, silent);
  const Words& words = computed.empty() ? moved : computed;
  if (words.empty()) return "copy";
  std::string text =
      llvm::join(llvm::ArrayRef(words).take_front(kMostWords), "+");
  if (words.size() > kMostWords)
    text += "+" + std::to_string(words.size() - kMostWords);
  return text;
}

// Kernels whose code is the same function, and all places that launch it.
struct Code {
  llvm::SetVector<Operation*> kernels;  // functions
  std::string pattern;
};

class LabelKernels : public impl::LabelKernelsPassBase<LabelKernels> {
 public:
  using LabelKernelsPassBase::LabelKernelsPassBase;

  void runOnOperation() override {
    const Layers layers(getOperation());
    llvm::MapVector<mlir::StringAttr, Code> codes;  // in order of launches
    getOperation().walk([&](Operation* op) {
      const std::string path = layers.of(op);
      if (!path.empty())
        op->setAttr(exec::kLayerAttr,
                    mlir::StringAttr::get(&getContext(), path));
      for (FuncOp kernel : kernelsOf(op)) {
        Code& code = codes[codeOf(kernel)];
        const std::string pattern = layers.patternOf(op);
        code.kernels.insert(kernel);
        if (!pattern.empty())
          code.pattern = code.pattern.empty()
                             ? pattern
                             : core::CommonPattern(code.pattern, pattern);
      }
    });
    llvm::StringMap<int> seen;
    for (auto& [name, code] : codes) {
      std::string label = labelOf(code);
      if (const int number = ++seen[label]; number > 1)
        label += "#" + std::to_string(number);
      for (Operation* kernel : code.kernels)
        kernel->setAttr(exec::kLabelAttr,
                        mlir::StringAttr::get(&getContext(), label));
    }
  }

 private:
  FuncOp kernel(mlir::FlatSymbolRefAttr symbol) {
    return getOperation().lookupSymbol<FuncOp>(symbol.getAttr());
  }

  llvm::SmallVector<FuncOp> kernelsOf(Operation* op) {
    if (auto launch = llvm::dyn_cast<exec::LaunchOp>(op))
      return {kernel(launch.getKernelAttr())};
    llvm::SmallVector<FuncOp> kernels;
    if (auto pieces = llvm::dyn_cast<exec::LaunchPiecesOp>(op))
      for (auto symbol :
           pieces.getKernels().getAsRange<mlir::FlatSymbolRefAttr>())
        kernels.push_back(kernel(symbol));
    return kernels;
  }

  static mlir::StringAttr codeOf(FuncOp kernel) {
    auto code = kernel->getAttrOfType<mlir::StringAttr>(exec::kKernelAttr);
    return code ? code : kernel.getSymNameAttr();
  }

  std::string labelOf(const Code& code) {
    auto described = llvm::cast<FuncOp>(code.kernels.front());
    if (auto whole = described->getAttrOfType<mlir::FlatSymbolRefAttr>(
            exec::kPartOfAttr))
      described = kernel(whole);
    const std::string operations =
        described.isExternal() ? "kernel" : operationsOf(described);
    const bool has_path = !code.pattern.empty() && code.pattern != "*";
    return has_path ? operations + "[" + code.pattern + "]" : operations;
  }
};

}  // namespace
}  // namespace partita::kernels
