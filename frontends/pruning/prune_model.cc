// Chooses weights, prunes them in memory, and writes the folder.
#include <cmath>
#include <filesystem>
#include <numeric>
#include <utility>

#include "dialects/nn/glob_list.h"
#include "frontends/pruning/masks.h"
#include "frontends/pruning/pruned_weights.h"
#include "frontends/pruning/pruning.h"
#include "frontends/pruning/stored_tensors.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "runtime/base/status_macros.h"

namespace partita::pruning {
namespace {

namespace fs = std::filesystem;
using absl::InvalidArgumentError;
using absl::Status;
using absl::StatusOr;
using llvm::StringRef;

int64_t product(const std::vector<int64_t>& shape, size_t from, size_t to) {
  int64_t result = 1;
  for (size_t i = from; i < to; ++i) result *= shape[i];
  return result;
}

// Adjacent summed dimensions are one. False if they are not adjacent.
bool linesOf(const PrunedWeight& weight, Lines& lines) {
  const auto& summed = weight.summed;
  for (size_t i = 1; i < summed.size(); ++i)
    if (summed[i] != summed[i - 1] + 1) return false;
  lines.outer = product(weight.shape, 0, summed.front());
  lines.length = product(weight.shape, summed.front(), summed.back() + 1);
  lines.inner = product(weight.shape, summed.back() + 1, weight.shape.size());
  return true;
}

double magnitudeOf(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += std::abs(value);
  return sum;
}

class Pruner {
 public:
  Pruner(mlir::func::FuncOp main, const Options& options,
         StoredTensors& tensors)
      : main_(main), options_(options), tensors_(tensors) {}

  StatusOr<Report> run() {
    PARTITA_RETURN_IF_ERROR(chooseWeights());
    std::vector<double> magnitudes;
    std::vector<Lines*> all;
    for (Chosen& chosen : chosen_) {
      magnitudes.push_back(magnitudeOf(chosen.lines.values));
      all.push_back(&chosen.lines);
      if (options_.group > 0)
        prunePattern(chosen);
      else if (!options_.global)
        pruneSmallest({&chosen.lines}, options_.sparsity);
    }
    if (options_.group == 0 && options_.global)
      pruneSmallest(all, options_.sparsity);
    for (size_t i = 0; i < chosen_.size(); ++i)
      finish(chosen_[i], magnitudes[i]);
    return std::move(report_);
  }

 private:
  struct Chosen {
    PrunedWeight weight;
    Lines lines;
    bool is_permuted = false;
  };

  Status chooseWeights() {
    const nn::GlobList kept(options_.left_alone);
    std::vector<std::string> others;
    const std::vector<PrunedWeight> found = findWeights(main_, others);
    std::vector<StringRef> names;
    for (const PrunedWeight& weight : found) {
      names.push_back(weight.name);
      const auto leave = [&](const std::string& reason) {
        report_.left_alone.push_back({weight.name, reason});
      };
      Chosen chosen{weight, {}, false};
      if (kept.matches(weight.name)) {
        leave("--keep");
      } else if (!tensors_.isWhole(weight.argument)) {
        leave("it is stored in parts");
      } else if (!linesOf(weight, chosen.lines)) {
        leave("it is summed over dimensions that are not adjacent");
      } else if (options_.group > 0 && weight.summed.size() > 1) {
        leave("a pattern needs a sum over one dimension");
      } else if (options_.group > 0 &&
                 chosen.lines.length % options_.group != 0) {
        leave("its sums are of " + std::to_string(chosen.lines.length) +
              " elements, not of a multiple of " +
              std::to_string(options_.group));
      } else {
        PARTITA_ASSIGN_OR_RETURN(chosen.lines.values,
                                 tensors_.floats(weight.argument));
        chosen_.push_back(std::move(chosen));
      }
    }
    for (const std::string& name : others)
      report_.left_alone.push_back(
          {name, "more than products and convolutions read it"});
    const std::string unmatched =
        nn::GlobList::firstUnmatched(options_.left_alone, names);
    if (!unmatched.empty())
      return InvalidArgumentError(
          "--keep: expected '" + unmatched +
          "' to match a weight that can be pruned, found none" +
          (found.empty() ? "" : "; one is '" + found.front().name + "'"));
    if (!chosen_.empty()) return absl::OkStatus();
    return InvalidArgumentError(
        "expected a weight of a product to prune, found none" +
        (report_.left_alone.empty()
             ? std::string()
             : ": '" + report_.left_alone.front().first +
                   "' is left alone, as " + report_.left_alone.front().second));
  }

  void prunePattern(Chosen& chosen) {
    if (options_.permute) permute(chosen);
    pruneGroups(chosen.lines, options_.keep, options_.group);
  }

  // Reorders the weight and those that make its operand: all of them in the
  // stored tensors, and chosen weights in their lines, too.
  void permute(Chosen& chosen) {
    const std::vector<Place> places = reorderedWith(main_, chosen.weight);
    if (places.empty()) return;
    for (const Place& place : places)
      if (!tensors_.isWhole(place.argument)) return;
    Lines& lines = chosen.lines;
    std::vector<int64_t> before(lines.length);
    std::iota(before.begin(), before.end(), int64_t{0});
    const std::vector<int64_t> order =
        bestOrder(lines, options_.keep, options_.group);
    if (keptMagnitude(lines, order, options_.keep, options_.group) <=
        keptMagnitude(lines, before, options_.keep, options_.group))
      return;
    Lines reordered = lines;
    for (int64_t line = 0; line < lines.count(); ++line)
      for (int64_t i = 0; i < lines.length; ++i)
        reordered.at(line, i) = lines.at(line, order[i]);
    lines = std::move(reordered);
    tensors_.reorder(chosen.weight.argument, chosen.weight.summed.front(),
                     order);
    chosen.is_permuted = true;
    for (const Place& place : places) reorder(place, order);
  }

  void reorder(const Place& place, const std::vector<int64_t>& order) {
    for (Chosen& other : chosen_) {
      if (other.weight.argument != place.argument) continue;
      // Rows of this matrix: its sums stay as they are.
      const auto& shape = other.weight.shape;
      const int64_t outer = product(shape, 0, place.dim),
                    inner = product(shape, place.dim + 1, shape.size()),
                    length = shape[place.dim];
      std::vector<float> values(other.lines.values.size());
      for (int64_t i = 0; i < outer; ++i)
        for (int64_t k = 0; k < length; ++k)
          for (int64_t j = 0; j < inner; ++j)
            values[(i * length + k) * inner + j] =
                other.lines.values[(i * length + order[k]) * inner + j];
      other.lines.values = std::move(values);
      break;
    }
    tensors_.reorder(place.argument, place.dim, order);
  }

  void finish(const Chosen& chosen, double magnitude) {
    const std::vector<float>& values = chosen.lines.values;
    PrunedTensor pruned{chosen.weight.name, chosen.weight.shape,
                        static_cast<int64_t>(values.size())};
    for (const float value : values) pruned.zeros += value == 0;
    if (magnitude > 0) pruned.kept_magnitude = magnitudeOf(values) / magnitude;
    pruned.is_permuted = chosen.is_permuted;
    report_.pruned.push_back(std::move(pruned));
    tensors_.setZeros(chosen.weight.argument, values);
  }

  mlir::func::FuncOp main_;
  const Options& options_;
  StoredTensors& tensors_;
  std::vector<Chosen> chosen_;
  Report report_;
};

// True for files of weights, in any format, and their indexes: copies would
// still hold the weights that are pruned.
bool holdsWeights(StringRef name) {
  static constexpr const char* kEndings[] = {
      ".safetensors", ".index.json", ".bin",       ".pt",   ".pth",
      ".ckpt",        ".h5",         ".ot",        ".npz",  ".msgpack",
      ".gguf",        ".onnx",       ".onnx_data", ".data", ".tflite"};
  return llvm::any_of(kEndings, [&](const char* ending) {
    return name.ends_with_insensitive(ending);
  });
}

// Files beside the weights: config.json, tokenizers ...
Status copyOthers(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::directory_iterator entry(from, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code kind;
    const std::string name = entry->path().filename().string();
    if (!entry->is_regular_file(kind) || holdsWeights(name)) continue;
    fs::copy_file(entry->path(), fs::path(to) / name, error);
    if (error) break;
  }
  if (!error) return absl::OkStatus();
  return InvalidArgumentError("-o: cannot copy the files of " + from + ": " +
                              error.message());
}

}  // namespace

Status parsePattern(const std::string& text, Options& options) {
  const auto [keep, group] = StringRef(text).split(':');
  if (!keep.getAsInteger(10, options.keep) &&
      !group.getAsInteger(10, options.group) && options.keep > 0 &&
      options.group > options.keep && options.group <= 64)
    return absl::OkStatus();
  return InvalidArgumentError(
      "--pattern: expected KEPT:OF, as in 2:4, found '" + text + "'");
}

Status checkLeftAlone(const Options& options) {
  const std::string malformed =
      nn::GlobList::firstMalformed(options.left_alone);
  if (malformed.empty()) return absl::OkStatus();
  return InvalidArgumentError("--keep: expected patterns of names, found '" +
                              malformed + "'");
}

StatusOr<Report> pruneModel(mlir::ModuleOp module, const Options& options,
                            const std::string& source_folder,
                            const std::string& folder,
                            const std::string& output) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  if (!main)
    return InvalidArgumentError("expected a function named 'main', found none");
  std::error_code error;
  if (fs::exists(output, error))
    return InvalidArgumentError(
        "-o: expected the name of a new folder, found '" + output +
        "', which exists");
  PARTITA_ASSIGN_OR_RETURN(StoredTensors tensors,
                           StoredTensors::open(main, source_folder));
  PARTITA_ASSIGN_OR_RETURN(Report report, Pruner(main, options, tensors).run());
  fs::create_directories(output, error);
  if (error)
    return InvalidArgumentError("-o: cannot make the folder '" + output +
                                "': " + error.message());
  StatusOr<int64_t> written =
      tensors.write((fs::path(output) / "model.safetensors").string());
  const Status copied = !written.ok()    ? written.status()
                        : folder.empty() ? absl::OkStatus()
                                         : copyOthers(folder, output);
  if (!copied.ok()) {
    fs::remove_all(output, error);
    return copied;
  }
  report.bytes = *written;
  return report;
}

}  // namespace partita::pruning
