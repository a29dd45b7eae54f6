// Chooses the weights, rounds them, changes the module, writes the folder.
#include "compiler/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/quantize/find_weights.h"
#include "compiler/quantize/round_weight.h"
#include "compiler/quantize/smooth.h"
#include "compiler/quantize/use_integers.h"
#include "compiler/quantize/weight_file.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status_macros.h"

namespace partita::quantize {
namespace {

namespace fs = std::filesystem;
using absl::InvalidArgumentError;
using absl::Status;
using base::DType;
using mlir::RankedTensorType;
using mlir::func::FuncOp;

constexpr size_t kMostListed = 12;  // weights in a message

class Quantization {
 public:
  Quantization(FuncOp main, const Options& options)
      : main_(main),
        options_(options),
        weights_(findWeights(main, /*needs_file=*/true, options.convolutions)) {
  }

  absl::StatusOr<Report> run(const std::string& output) {
    PARTITA_RETURN_IF_ERROR(keepWeights(weights_, options_.keep,
                                        options_.embeddings, options_.names));
    if (options_.calibration) PARTITA_RETURN_IF_ERROR(chooseRanges());
    PARTITA_RETURN_IF_ERROR(roundAll());
    if (rounded_.empty()) return refuseNone();
    Report report;
    for (unsigned i = 0; i < main_.getNumArguments(); ++i)
      report.bytes_before += storedBytes(i);
    roundInputs();
    for (const auto& [argument, steps] : useIntegers(main_, weights_)) {
      scales_[steps.scale] = argument;
      if (steps.zero) zeros_[*steps.zero] = argument;
    }
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

  Status roundAll() {
    for (Weight& weight : weights_) {
      if (options_.groups && weight.obstacle.empty()) setGroup(weight);
      weight.is_float8 = options_.float8;
      LayerReport layer;
      layer.weight = weight.name;
      layer.shape = typeOf(weight.argument).getShape().vec();
      layer.bytes_before = layer.bytes_after = storedBytes(weight.argument);
      if (weight.obstacle.empty())
        PARTITA_RETURN_IF_ERROR(round(weight, layer));
      layer.kept = weight.obstacle;
      layers_.push_back(std::move(layer));
    }
    return absl::OkStatus();
  }

  void setGroup(Weight& weight) {
    const RankedTensorType type = typeOf(weight.argument);
    const int64_t size = type.getDimSize(weight.order(type.getRank()).back());
    if (static_cast<int64_t>(weight.channels.size()) == type.getRank() ||
        size % options_.groups->group != 0) {
      weight.obstacle = absl::StrCat(
          "its products sum over ", size,
          " numbers, no multiple of the group of ", options_.groups->group,
          size % kLeastGroup == 0
              ? absl::StrCat("; --group ", kLeastGroup, " divides them")
              : "");
      return;
    }
    weight.group = options_.groups->group;
    weight.has_zeros = options_.groups->asymmetric;
  }

  absl::StatusOr<RoundedWeight> rounded(const Weight& weight,
                                        const std::vector<float>& numbers) {
    const std::vector<int64_t> shape = typeOf(weight.argument).getShape().vec();
    if (weight.group == 0)
      return RoundWeight(
          numbers, shape, {weight.channels.begin(), weight.channels.end()},
          weight.is_float8 ? ByteFormat::kE4M3 : ByteFormat::kInteger);
    const auto order = weight.order(static_cast<int64_t>(shape.size()));
    return RoundGroups(Permuted(numbers, shape, {order.begin(), order.end()}),
                       *options_.groups);
  }

  absl::StatusOr<std::vector<float>> numbersOf(const Weight& weight) {
    PARTITA_ASSIGN_OR_RETURN(
        std::vector<float> numbers,
        readFloats(fileOf(weight.argument), options_.folder));
    if (static_cast<int64_t>(numbers.size()) !=
        typeOf(weight.argument).getNumElements())
      return InvalidArgumentError(absl::StrCat(
          weight.name, ": expected ", typeOf(weight.argument).getNumElements(),
          " numbers, found ", numbers.size()));
    return numbers;
  }

  // The only dimension of a weight that is no channel.
  int64_t contractedOf(const Weight& weight) {
    int64_t dim = 0;
    while (llvm::is_contained(weight.channels, dim)) ++dim;
    return dim;
  }

  Status round(Weight& weight, LayerReport& layer) {
    PARTITA_ASSIGN_OR_RETURN(std::vector<float> numbers, numbersOf(weight));
    if (const auto found = factors_.find(weight.argument);
        found != factors_.end())
      multiplyAlong(numbers, layer.shape, contractedOf(weight), *found->second);
    absl::StatusOr<RoundedWeight> result = rounded(weight, numbers);
    if (!result.ok())
      return InvalidArgumentError(absl::StrCat(
          weight.name, ": ", std::string(result.status().message())));
    layer.decibels = result->Decibels();
    layer.relative_error =
        result->signal > 0 ? std::sqrt(result->noise / result->signal) : 0;
    if (layer.decibels < options_.least_decibels) {
      weight.obstacle = "below --min-snr";
      return absl::OkStatus();
    }
    layer.bytes_after =
        static_cast<int64_t>(result->values.size() + 4 * result->scales.size() +
                             result->zeros.size());
    rounded_[weight.argument] = *std::move(result);
    return absl::OkStatus();
  }

  // Factors of the activation's channels, from its largest magnitudes and those
  // of its weights' rows.
  absl::StatusOr<std::vector<float>> factorsOf(
      const Activation& activation, const Calibration::Extremes& extremes) {
    if (activation.channel < 0 || options_.smoothing == 0)
      return std::vector<float>();
    std::vector<float> rows(static_cast<size_t>(activation.channels()), 0);
    for (const Weight& weight : weights_) {
      if (!llvm::is_contained(activation.weights, weight.argument)) continue;
      PARTITA_ASSIGN_OR_RETURN(const std::vector<float> numbers,
                               numbersOf(weight));
      largestAlong(numbers, typeOf(weight.argument).getShape().vec(),
                   contractedOf(weight), rows);
    }
    std::vector<double> largest;
    for (auto [low, high] : llvm::zip_equal(extremes.lows, extremes.highs))
      largest.push_back(std::max(-low, high));
    return smoothingFactors(largest, rows, options_.smoothing);
  }

  // The range of an activation that is divided by its factors.
  static Range rangeOf(const Calibration::Extremes& extremes,
                       std::vector<float> factors) {
    Range range;
    for (size_t i = 0; i < extremes.lows.size(); ++i) {
      const double factor = factors.empty() ? 1 : double{factors[i]};
      range.low = std::min(range.low, extremes.lows[i] / factor);
      range.high = std::max(range.high, extremes.highs[i] / factor);
      range.mean_square += extremes.mean_squares[i] / (factor * factor) /
                           static_cast<double>(extremes.lows.size());
    }
    range.factors = std::move(factors);
    return range;
  }

  static bool isFinite(const Calibration::Extremes& extremes) {
    const auto finite = [](double number) { return std::isfinite(number); };
    return llvm::all_of(extremes.lows, finite) &&
           llvm::all_of(extremes.highs, finite);
  }

  // Measures the activations that weights multiply, and chooses their grids.
  Status chooseRanges() {
    auto module = main_->getParentOfType<mlir::ModuleOp>();
    activations_ = findActivations(main_, weights_);
    if (activations_.empty()) return absl::OkStatus();
    PARTITA_ASSIGN_OR_RETURN(const std::vector<Calibration::Extremes> extremes,
                             options_.calibration->measure(module, weights_));
    for (size_t i = 0; i < activations_.size(); ++i) {
      if (!isFinite(extremes[i]))
        return InvalidArgumentError("--calibrate: expected finite inputs of " +
                                    activations_[i].name +
                                    ", found infinities or NaN");
      PARTITA_ASSIGN_OR_RETURN(std::vector<float> factors,
                               factorsOf(activations_[i], extremes[i]));
      ranges_.push_back(rangeOf(extremes[i], std::move(factors)));
    }
    PARTITA_RETURN_IF_ERROR(
        options_.calibration->narrow(module, weights_, ranges_));
    for (size_t i = 0; i < activations_.size(); ++i) {
      if (decibelsOf(ranges_[i]) < options_.least_decibels)
        ranges_[i].factors.clear();
      else if (!ranges_[i].factors.empty())
        for (const unsigned weight : activations_[i].weights)
          factors_[weight] = &ranges_[i].factors;
    }
    return absl::OkStatus();
  }

  // Signal to noise of an activation whose rounding errors are even.
  static double decibelsOf(const Range& range) {
    const double step = double{gridOf(range).scale};
    return 10 * std::log10(range.mean_square / (step * step / 12));
  }

  // Rounds the activations of the weights that were rounded.
  void roundInputs() {
    const std::vector<Activation> rounded = findActivations(main_, weights_);
    for (const Activation& activation : rounded) {
      const auto same =
          llvm::find_if(activations_, [&](const Activation& each) {
            return each.value == activation.value;
          });
      if (same == activations_.end()) continue;
      const Range& range =
          ranges_[static_cast<size_t>(same - activations_.begin())];
      const double decibels = decibelsOf(range);
      const bool keeps = decibels < options_.least_decibels;
      for (LayerReport& layer : layers_) {
        if (layer.weight != activation.name) continue;
        layer.input = range;
        layer.input_decibels = decibels;
        layer.keeps_input = keeps;
      }
      if (keeps) continue;
      // `same` knows the channel of all weights, also of those that stayed.
      Activation whole = activation;
      whole.channel = same->channel;
      addGrid(roundActivation(main_, whole, !range.factors.empty()), range);
    }
  }

  void addGrid(const GridArguments& arguments, const Range& range) {
    const Grid grid = gridOf(range);
    const auto bytes = [](const auto& number) {
      return std::string(reinterpret_cast<const char*>(&number),
                         sizeof(number));
    };
    grids_[arguments.scale] = bytes(grid.scale);
    grids_[arguments.zero] = bytes(grid.zero);
    if (arguments.divisor == arguments.scale) return;
    std::string& divisor = grids_[arguments.divisor];
    for (const float factor : range.factors)
      divisor += bytes(factor * grid.scale);
  }

  Status refuseNone() const {
    std::string message =
        "expected weights of matrix products to quantize, found none";
    for (size_t i = 0; i < layers_.size() && i < kMostListed; ++i)
      absl::StrAppend(&message, i == 0 ? ": " : ", ", layers_[i].weight, " (",
                      layers_[i].kept, ")");
    if (!layers_.empty() && !options_.calibration)
      absl::StrAppend(&message,
                      "; give --calibrate DATA to round weights of "
                      "convolutions to integers");
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
      return addBytes(options_.float8 ? DType::kF8E4M3 : DType::kI8,
                      bytesOf(found->second.values));
    if (const auto scale = scales_.find(argument); scale != scales_.end())
      return addBytes(DType::kF32, bytesOf(rounded_[scale->second].scales));
    if (const auto zero = zeros_.find(argument); zero != zeros_.end())
      return addBytes(DType::kI8, bytesOf(rounded_[zero->second].zeros));
    if (const auto grid = grids_.find(argument); grid != grids_.end())
      return addBytes(
          typeOf(argument).getElementType().isF32() ? DType::kF32 : DType::kI32,
          grid->second);
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
  std::map<unsigned, RoundedWeight> rounded_;    // by argument
  std::map<unsigned, unsigned> scales_, zeros_;  // weight's argument
  std::vector<Activation> activations_;          // that were measured
  std::vector<Range> ranges_;                    // of activations_
  // Of the rows of a weight, by its argument.
  std::map<unsigned, const std::vector<float>*> factors_;
  std::map<unsigned, std::string> grids_;  // bytes, by argument
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
  if (options.calibration) inlineLayers(main);
  return Quantization(main, options).run(output);
}

}  // namespace partita::quantize
