// Reads from the shapes of stored tensors how each weight was rounded.
#include "compiler/quantize/take_integers.h"

#include <filesystem>
#include <system_error>

#include "compiler/quantize/find_weights.h"
#include "compiler/quantize/quantize.h"
#include "compiler/quantize/use_groups.h"
#include "compiler/quantize/use_integers.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/base/safetensors.h"

namespace partita::quantize {
namespace {

using llvm::StringRef;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::func::FuncOp;

constexpr char kInputScale[] = "_input_scale";

class Taking {
 public:
  Taking(FuncOp main, base::SafetensorsFile file, std::string path)
      : main_(main), file_(std::move(file)), path_(std::move(path)) {}

  LogicalResult run() {
    std::vector<Weight> weights = findWeights(main_, /*needs_file=*/false);
    if (!hasIntegers(weights)) return mlir::success();
    for (const auto& [name, entry] : file_.header().tensors)
      if (StringRef(name).ends_with(kInputScale))
        return refuse() << "expected integers of weights alone, found " << name
                        << ", of an activation: compile the folder itself";
    for (Weight& weight : weights) {
      const base::SafetensorsEntry* entry = find(weight.name);
      if (!isInteger(entry))
        weight.obstacle = "its file has floats";
      else if (mlir::failed(readForm(weight, *entry)))
        return mlir::failure();
    }
    for (const auto& [argument, steps] : useIntegers(main_, weights)) {
      if (mlir::failed(setSource(argument)) ||
          mlir::failed(setSource(steps.scale)) ||
          (steps.zero && mlir::failed(setSource(*steps.zero))))
        return mlir::failure();
    }
    return mlir::success();
  }

 private:
  mlir::InFlightDiagnostic refuse() {
    return mlir::emitError(
        mlir::FileLineColLoc::get(main_.getContext(), path_, 0, 0));
  }

  const base::SafetensorsEntry* find(const std::string& name) const {
    const auto found = file_.header().tensors.find(name);
    return found == file_.header().tensors.end() ? nullptr : &found->second;
  }

  static bool isInteger(const base::SafetensorsEntry* entry) {
    return entry != nullptr && entry->dtype == base::DType::kI8;
  }

  bool hasIntegers(const std::vector<Weight>& weights) const {
    return llvm::any_of(weights, [&](const Weight& weight) {
      return isInteger(find(weight.name)) && find(weight.name + "_scale");
    });
  }

  // Sets the group of a weight of 4 bits.
  LogicalResult readForm(Weight& weight, const base::SafetensorsEntry& entry) {
    const auto type = llvm::cast<RankedTensorType>(
        main_.getArgument(weight.argument).getType());
    if (!weight.obstacle.empty())
      return refuse() << weight.name
                      << ": expected a weight that products multiply, as its "
                         "integers need, found one that is "
                      << weight.obstacle;
    const llvm::ArrayRef<int64_t> stored(entry.shape);
    if (stored == type.getShape()) return mlir::success();
    if (static_cast<int64_t>(stored.size()) == type.getRank() + 1 &&
        stored.back() > 0) {
      weight.group = 2 * stored.back();
      weight.has_zeros = find(weight.name + "_zero") != nullptr;
      RankedTensorType packed = packedType(weight, type);
      if (packed.getShape() == stored &&
          2 * packed.getNumElements() == type.getNumElements())
        return mlir::success();
    }
    return refuse() << weight.name << ": expected integers of a weight " << type
                    << ", found a tensor of rank " << stored.size()
                    << " with other sizes: quantize this model again";
  }

  LogicalResult setSource(unsigned argument) {
    const auto type =
        llvm::cast<RankedTensorType>(main_.getArgument(argument).getType());
    auto name =
        main_.getArgAttrOfType<mlir::StringAttr>(argument, nn::kNameAttr);
    const base::SafetensorsEntry* entry = find(name.str());
    if (entry == nullptr || llvm::ArrayRef(entry->shape) != type.getShape())
      return refuse() << "expected a tensor " << name << " of " << type
                      << ", found "
                      << (entry == nullptr ? "none" : "other sizes")
                      << ": quantize this model again";
    main_.setArgAttr(argument, nn::kSourceAttr,
                     nn::FileAttr::get(main_.getContext(), path_, entry->offset,
                                       entry->bytes, type.getElementType()));
    return mlir::success();
  }

  FuncOp main_;
  const base::SafetensorsFile file_;
  const std::string path_;
};

}  // namespace

LogicalResult takeIntegers(mlir::ModuleOp module, const std::string& folder) {
  auto main = module.lookupSymbol<FuncOp>("main");
  const std::string path =
      (std::filesystem::path(folder) / kWeightsFile).string();
  std::error_code error;
  if (!main || !std::filesystem::is_regular_file(path, error))
    return mlir::success();
  absl::StatusOr<base::SafetensorsFile> file =
      base::SafetensorsFile::Open(path);
  // The reader of weights says what is wrong with a file.
  if (!file.ok()) return mlir::success();
  return Taking(main, *std::move(file), path).run();
}

}  // namespace partita::quantize
