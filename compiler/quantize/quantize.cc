// Chooses the weights, rounds them, changes the module, writes the folder.
#include "compiler/quantize/quantize.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/plan/glob.h"
#include "compiler/quantize/find_weights.h"
#include "compiler/quantize/round_weight.h"
#include "compiler/quantize/use_integers.h"
#include "compiler/quantize/weight_file.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status_macros.h"

namespace partita::quantize {
namespace {

namespace fs = std::filesystem;
using absl::InvalidArgumentError;
using absl::Status;
using base::DType;
using llvm::StringRef;
using mlir::RankedTensorType;
using mlir::func::FuncOp;

constexpr size_t kMostListed = 12;  // weights in a message

bool matches(const std::string& pattern, const std::string& name) {
  StringRef module(name);
  module.consume_back(".weight");
  if (plan::MatchesGlob(pattern, name) ||
      plan::MatchesGlob(pattern, module.str()))
    return true;
  return pattern.find_first_of("*?[{\\") == std::string::npos &&
         (StringRef(name).ends_with("." + pattern) ||
          module.ends_with("." + pattern));
}

class Quantization {
 public:
  Quantization(FuncOp main, const Options& options)
      : main_(main), options_(options), weights_(findWeights(main)) {}

  absl::StatusOr<Report> run(const std::string& output) {
    PARTITA_RETURN_IF_ERROR(keepByName());
    PARTITA_RETURN_IF_ERROR(roundAll());
    if (rounded_.empty()) return refuseNone();
    Report report;
    for (unsigned i = 0; i < main_.getNumArguments(); ++i)
      report.bytes_before += storedBytes(i);
    if (options_.measure) PARTITA_RETURN_IF_ERROR(roundInputs());
    scales_ = useIntegers(main_, weights_);
    report.bytes_after = addTensors();
    report.layers = std::move(layers_);
    std::error_code error;
    if (fs::exists(output, error))
      return InvalidArgumentError(
          "-o: expected the name of a new folder, found '" + output +
          "', which exists");
    fs::create_directories(output, error);
    if (error)
      return InvalidArgumentError("-o: cannot make the folder '" + output +
                                  "': " + error.message());
    if (const Status written = write(output); !written.ok()) {
      fs::remove_all(output, error);
      return written;
    }
    return report;
  }

 private:
  RankedTensorType typeOf(unsigned argument) {
    return llvm::cast<RankedTensorType>(main_.getArgument(argument).getType());
  }
  nn::FileAttr fileOf(unsigned argument) {
    return main_.getArgAttrOfType<nn::FileAttr>(argument, nn::kSourceAttr);
  }
  // Bytes of a parameter in memory.
  int64_t storedBytes(unsigned argument) {
    if (!main_.getArgAttr(argument, nn::kSourceAttr)) return 0;
    const RankedTensorType type = typeOf(argument);
    return type.getNumElements() * static_cast<int64_t>(llvm::divideCeil(
                                       type.getElementTypeBitWidth(), 8));
  }

  Status keepByName() {
    for (const std::string& pattern : options_.keep) {
      PARTITA_RETURN_IF_ERROR(plan::CheckGlob(pattern));
      bool found = false;
      for (Weight& weight : weights_) {
        if (!matches(pattern, weight.name)) continue;
        found = true;
        if (weight.obstacle.empty()) weight.obstacle = "--keep " + pattern;
      }
      if (found) continue;
      std::string message = absl::StrCat(
          "--keep: expected patterns of weights, found none that matches '",
          pattern, "'");
      for (size_t i = 0; i < weights_.size() && i < kMostListed; ++i)
        absl::StrAppend(&message, i == 0 ? "; the first weights are " : ", ",
                        weights_[i].name);
      return InvalidArgumentError(message);
    }
    return absl::OkStatus();
  }

  Status roundAll() {
    for (Weight& weight : weights_) {
      LayerReport layer;
      layer.weight = weight.name;
      layer.shape = typeOf(weight.argument).getShape().vec();
      layer.bytes_before = layer.bytes_after = storedBytes(weight.argument);
      if (weight.obstacle.empty() && !weight.is_multiplied &&
          !options_.embeddings)
        weight.obstacle = "no product reads it (--embeddings)";
      if (weight.obstacle.empty())
        PARTITA_RETURN_IF_ERROR(round(weight, layer));
      layer.kept = weight.obstacle;
      layers_.push_back(std::move(layer));
    }
    return absl::OkStatus();
  }

  Status round(Weight& weight, LayerReport& layer) {
    PARTITA_ASSIGN_OR_RETURN(
        const std::vector<float> numbers,
        readFloats(fileOf(weight.argument), options_.folder));
    if (static_cast<int64_t>(numbers.size()) !=
        typeOf(weight.argument).getNumElements())
      return InvalidArgumentError(absl::StrCat(
          weight.name, ": expected ", typeOf(weight.argument).getNumElements(),
          " numbers, found ", numbers.size()));
    absl::StatusOr<RoundedWeight> rounded = RoundWeight(
        numbers, layer.shape, {weight.channels.begin(), weight.channels.end()});
    if (!rounded.ok())
      return InvalidArgumentError(absl::StrCat(
          weight.name, ": ", std::string(rounded.status().message())));
    layer.decibels = rounded->Decibels();
    layer.relative_error =
        rounded->signal > 0 ? std::sqrt(rounded->noise / rounded->signal) : 0;
    if (layer.decibels < options_.least_decibels) {
      weight.obstacle = "below --min-snr";
      return absl::OkStatus();
    }
    layer.bytes_after = static_cast<int64_t>(rounded->values.size() +
                                             4 * rounded->scales.size());
    rounded_[weight.argument] = *std::move(rounded);
    return absl::OkStatus();
  }

  // Rounds the activations that quantized weights multiply.
  Status roundInputs() {
    const std::vector<Activation> activations =
        findActivations(main_, weights_);
    std::vector<int64_t> sizes;
    for (const Activation& each : activations)
      sizes.push_back(
          llvm::cast<RankedTensorType>(each.value.getType()).getNumElements());
    PARTITA_ASSIGN_OR_RETURN(
        const std::vector<Range> ranges,
        options_.measure(main_->getParentOfType<mlir::ModuleOp>(), weights_,
                         sizes));
    for (size_t i = 0; i < activations.size(); ++i) {
      const Range& range = ranges[i];
      if (!std::isfinite(range.low) || !std::isfinite(range.high))
        return InvalidArgumentError(absl::StrCat(
            "--calibrate: expected finite inputs of ", activations[i].name,
            ", found numbers from ", range.low, " to ", range.high));
      grids_.push_back(gridOf(range));
      const double step = double{grids_.back().scale};
      for (LayerReport& layer : layers_) {
        if (layer.weight != activations[i].name) continue;
        layer.input = range;
        layer.input_decibels =
            10 * std::log10(range.mean_square / (step * step / 12));
      }
    }
    first_of_grids_ = roundActivations(main_, activations);
    return absl::OkStatus();
  }

  Status refuseNone() const {
    std::string message =
        "expected weights of matrix products to quantize, found none";
    for (size_t i = 0; i < layers_.size() && i < kMostListed; ++i)
      absl::StrAppend(&message, i == 0 ? ": " : ", ", layers_[i].weight, " (",
                      layers_[i].kept, ")");
    return InvalidArgumentError(message);
  }

  // Adds all parameters that files hold to the new file. Returns their bytes.
  int64_t addTensors() {
    int64_t bytes = 0;
    for (unsigned i = 0; i < main_.getNumArguments(); ++i) bytes += add(i);
    return bytes;
  }

  int64_t add(unsigned argument) {
    auto name =
        main_.getArgAttrOfType<mlir::StringAttr>(argument, nn::kNameAttr);
    const auto addBytes = [&](DType dtype, std::string_view bytes) {
      file_.add(
          name.str(), dtype, typeOf(argument).getShape(),
          [bytes](const WeightFile::Append& append) { return append(bytes); });
      arguments_.push_back({argument, dtype});
      return static_cast<int64_t>(bytes.size());
    };
    if (const auto found = rounded_.find(argument); found != rounded_.end())
      return addBytes(DType::kI8, bytesOf(found->second.values));
    for (const auto& [weight, scale] : scales_)
      if (scale == argument)
        return addBytes(DType::kF32, bytesOf(rounded_[weight].scales));
    for (size_t i = 0; i < grids_.size(); ++i) {
      const Grid& grid = grids_[i];
      if (argument == first_of_grids_[i])
        return addBytes(DType::kF32,
                        {reinterpret_cast<const char*>(&grid.scale), 4});
      if (argument == first_of_grids_[i] + 1)
        return addBytes(DType::kI32,
                        {reinterpret_cast<const char*>(&grid.zero), 4});
    }
    const nn::FileAttr source = fileOf(argument);
    if (!source || !name) return storedBytes(argument);
    const auto stored = dtypeOf(source);
    if (!stored) return storedBytes(argument);
    file_.add(name.str(), *stored, typeOf(argument).getShape(),
              [this, source](const WeightFile::Append& append) -> Status {
                PARTITA_ASSIGN_OR_RETURN(const StoredBytes bytes,
                                         readSource(source, options_.folder));
                return append(bytes.bytes);
              });
    arguments_.push_back({argument, *stored});
    return storedBytes(argument);
  }

  static std::optional<DType> dtypeOf(nn::FileAttr source) {
    std::string name;
    llvm::raw_string_ostream(name) << source.getStored();
    return base::DTypeFromName(name);
  }

  template <typename T>
  static std::string_view bytesOf(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()),
            values.size() * sizeof(T)};
  }

  Status write(const std::string& output) {
    const auto place = [&](size_t number, uint64_t offset) {
      const auto [argument, dtype] = arguments_[number];
      main_.setArgAttr(argument, nn::kSourceAttr,
                       sourceAt(argument, dtype, offset));
    };
    PARTITA_RETURN_IF_ERROR(
        file_.write((fs::path(output) / kWeightsFile).string(), place));
    std::string text;
    llvm::raw_string_ostream stream(text);
    main_->getParentOfType<mlir::ModuleOp>()->print(
        stream, mlir::OpPrintingFlags().enableDebugInfo(true));
    return base::WriteFileAtomically((fs::path(output) / kModelFile).string(),
                                     text);
  }

  nn::FileAttr sourceAt(unsigned argument, DType dtype, uint64_t offset) {
    const nn::FileAttr old = fileOf(argument);
    mlir::MLIRContext* context = main_.getContext();
    // New tensors have the type of their argument.
    const bool is_new = rounded_.count(argument) > 0 || !old;
    const mlir::Type stored =
        is_new ? typeOf(argument).getElementType() : old.getStored();
    const auto bytes = static_cast<uint64_t>(typeOf(argument).getNumElements() *
                                             base::SizeOf(dtype));
    return nn::FileAttr::get(context, kWeightsFile, offset, bytes, stored);
  }

  FuncOp main_;
  const Options& options_;
  std::vector<Weight> weights_;
  std::vector<LayerReport> layers_;
  std::map<unsigned, RoundedWeight> rounded_;  // by argument
  std::map<unsigned, unsigned> scales_;        // argument by weight's argument
  std::vector<Grid> grids_;                    // of activations
  std::vector<unsigned> first_of_grids_;       // argument of each grid's scale
  WeightFile file_;
  std::vector<std::pair<unsigned, DType>> arguments_;  // by tensor of file_
};

}  // namespace

absl::StatusOr<Report> quantizeModel(mlir::ModuleOp module,
                                     const Options& options,
                                     const std::string& output) {
  auto main = module.lookupSymbol<FuncOp>("main");
  if (!main)
    return InvalidArgumentError(
        "expected a model with a function 'main', found none");
  if (options.measure) inlineLayers(main);
  return Quantization(main, options).run(output);
}

}  // namespace partita::quantize
