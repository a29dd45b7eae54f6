// Reads from the shapes of stored tensors how each weight was rounded.
#include "compiler/quantize/take_integers.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <vector>

#include "compiler/quantize/find_weights.h"
#include "compiler/quantize/quantize.h"
#include "compiler/quantize/use_groups.h"
#include "compiler/quantize/use_integers.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/base/checked_json.h"
#include "runtime/base/safetensors.h"
#include "runtime/base/write_safetensors.h"

namespace partita::quantize {
namespace {

using llvm::StringRef;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::func::FuncOp;

constexpr char kInputScale[] = "_input_scale";

struct Tensor {
  std::string path;
  base::SafetensorsEntry entry;
};
using Tensors = std::map<std::string, Tensor, std::less<>>;

// The files that hold the folder's weights, in the order in which the reader of
// weights looks for them. An index lists the files of a checkpoint.
std::vector<std::string> filesOf(const std::filesystem::path& folder) {
  std::error_code error;
  for (const char* name : {kWeightsFile, "weights.safetensors"})
    if (std::filesystem::exists(folder / name, error)) return {name};
  std::ifstream stream(folder / "model.safetensors.index.json",
                       std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  base::JsonError json_error;
  const nlohmann::json index = base::ParseJson(text, json_error);
  if (!index.is_object()) return {};
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object()) return {};
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) return {};
    // Those in other folders are refused by the reader of weights.
    const std::filesystem::path path(file.get<std::string>());
    if (path == path.filename()) files.insert(path.string());
  }
  return {files.begin(), files.end()};
}

// Nothing of files that cannot be read: the reader of weights says what is
// wrong with them.
Tensors tensorsOf(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path absolute =
      std::filesystem::absolute(folder, error).lexically_normal();
  Tensors tensors;
  for (const std::string& name : filesOf(absolute)) {
    const std::string path = (absolute / name).string();
    if (!std::filesystem::is_regular_file(path, error)) return {};
    const absl::StatusOr<base::SafetensorsFile> file =
        base::SafetensorsFile::Open(path);
    if (!file.ok()) return {};
    for (const auto& [tensor, entry] : file->header().tensors)
      tensors.emplace(tensor, Tensor{path, entry});
  }
  return tensors;
}

class Taking {
 public:
  Taking(FuncOp main, Tensors tensors, std::string folder)
      : main_(main), tensors_(std::move(tensors)), folder_(std::move(folder)) {}

  LogicalResult run() {
    std::vector<Weight> weights = findWeights(main_, /*needs_file=*/false);
    if (!hasIntegers(weights)) return mlir::success();
    for (const auto& [name, tensor] : tensors_)
      if (isRange(name))
        return refuse() << "expected integers of weights alone, found " << name
                        << ", of an activation: compile the folder itself";
    for (Weight& weight : weights) {
      const Tensor* tensor = find(weight.name);
      if (!isInteger(tensor))
        weight.obstacle = "its file has floats";
      else if (mlir::failed(readForm(weight, tensor->entry)))
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
        mlir::FileLineColLoc::get(main_.getContext(), folder_, 0, 0));
  }

  const Tensor* find(StringRef name) const {
    const auto found = tensors_.find(name.str());
    return found == tensors_.end() ? nullptr : &found->second;
  }

  static bool isInteger(const Tensor* tensor) {
    return tensor != nullptr && (tensor->entry.dtype == base::DType::kI8 ||
                                 tensor->entry.dtype == base::DType::kF8E4M3);
  }

  // True for the range of a product's input; a weight that is called NAME_input
  // has a scale of that name, too.
  bool isRange(StringRef name) const {
    return name.ends_with(kInputScale) &&
           find(name.drop_back(StringRef("_scale").size())) == nullptr;
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
    weight.is_float8 = entry.dtype == base::DType::kF8E4M3;
    if (stored == type.getShape()) return mlir::success();
    if (!weight.is_float8 &&
        static_cast<int64_t>(stored.size()) == type.getRank() + 1 &&
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
    const Tensor* tensor = find(name.getValue());
    const bool is_float8 =
        mlir::isa<mlir::Float8E4M3FNType>(type.getElementType());
    const base::DType expected = is_float8 ? base::DType::kF8E4M3
                                 : type.getElementType().isInteger(8)
                                     ? base::DType::kI8
                                     : base::DType::kF32;
    if (tensor == nullptr ||
        llvm::ArrayRef(tensor->entry.shape) != type.getShape())
      return refuse() << "expected a tensor " << name << " of " << type
                      << ", found "
                      << (tensor == nullptr ? "none" : "other sizes")
                      << ": quantize this model again";
    const base::SafetensorsEntry& entry = tensor->entry;
    if (entry.dtype != expected)
      return refuse() << "expected a tensor " << name << " of "
                      << base::StoredName(expected) << ", found "
                      << entry.stored << ": quantize this model again";
    main_.setArgAttr(
        argument, nn::kSourceAttr,
        nn::FileAttr::get(main_.getContext(), tensor->path, entry.offset,
                          entry.bytes, type.getElementType()));
    return mlir::success();
  }

  FuncOp main_;
  const Tensors tensors_;
  const std::string folder_;
};

}  // namespace

LogicalResult takeIntegers(mlir::ModuleOp module, const std::string& folder) {
  auto main = module.lookupSymbol<FuncOp>("main");
  if (!main) return mlir::success();
  return Taking(main, tensorsOf(folder), folder).run();
}

}  // namespace partita::quantize
