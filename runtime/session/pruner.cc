// Reads whole weights from all devices, sets elements to zero, and writes them
// back, so that a division does not change what is pruned.
#include "runtime/session/pruner.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/dtype.h"
#include "runtime/base/smallest.h"
#include "runtime/base/status_macros.h"
#include "runtime/session/rank_stepper.h"

namespace partita::session {
namespace {

bool Matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

int64_t CountZeros(const std::vector<float>& values) {
  return std::count(values.begin(), values.end(), 0.0f);
}

}  // namespace

absl::StatusOr<Pruner> Pruner::Make(executor::RankGroup& ranks,
                                    const PruneOptions& options) {
  if (ranks.processes() > 1)
    return absl::FailedPreconditionError(absl::StrCat(
        "--prune-schedule: expected all devices in one process, found ",
        ranks.processes(),
        " processes, each with parts of weights; run one process with "
        "--devices, or prune between runs with partita prune"));
  if (LateLosses(ranks.program()) > 0)
    return absl::FailedPreconditionError(
        "--prune-schedule: expected steps that use the newest weights, found a "
        "pipeline without a flush; compile the model with another schedule");
  std::vector<std::string> taken, left;
  const std::vector<std::string> parts =
      absl::StrSplit(options.weights, ';', absl::SkipWhitespace());
  for (const std::string& part : parts) {
    const std::string pattern(absl::StripAsciiWhitespace(part));
    if (pattern[0] == '!') {
      left.push_back(pattern.substr(1));
    } else {
      taken.push_back(pattern);
    }
  }
  Pruner pruner(ranks, options);
  std::vector<bool> matched(taken.size());
  std::string some;
  for (const executor::ParameterSpec& parameter : ranks.parameters()) {
    if (parameter.kind != program::ParameterKind::parameter ||
        !parameter.updated || parameter.whole.shape.size() < 2 ||
        !base::IsFloat(parameter.whole.dtype))
      continue;
    const std::string& name = parameter.whole.name;
    if (some.empty()) some = name;
    if (std::any_of(left.begin(), left.end(), [&](const std::string& pattern) {
          return Matches(pattern, name);
        }))
      continue;
    bool is_taken = false;
    for (size_t i = 0; i < taken.size(); ++i) {
      if (!Matches(taken[i], name)) continue;
      matched[i] = is_taken = true;
    }
    if (is_taken) pruner.weights_.push_back({parameter.whole, 0});
  }
  for (size_t i = 0; i < taken.size(); ++i)
    if (!matched[i])
      return absl::NotFoundError(absl::StrCat(
          "--prune-weights: expected '", taken[i],
          "' to match a matrix that is trained, found none",
          some.empty() ? "" : absl::StrCat("; one is '", some, "'")));
  if (pruner.weights_.empty())
    return absl::NotFoundError(
        absl::StrCat("--prune-weights: expected a pattern that matches a "
                     "matrix, found none in '",
                     options.weights, "'"));
  return pruner;
}

absl::StatusOr<std::vector<float>> Pruner::Read(const Weight& weight) const {
  const base::TensorSpec& spec = weight.spec;
  std::vector<char> stored(static_cast<size_t>(spec.bytes));
  PARTITA_RETURN_IF_ERROR(ranks_->ReadParameter(
      spec.name, {spec.dtype, spec.shape, stored.data()}));
  const int64_t count = base::ElementCount(spec.shape).value_or(0);
  std::vector<float> values(static_cast<size_t>(count));
  base::Convert(spec.dtype, stored.data(), base::DType::kF32, values.data(),
                count);
  if (!std::all_of(values.begin(), values.end(),
                   [](float value) { return std::isfinite(value); }))
    return absl::FailedPreconditionError(
        absl::StrCat("expected numbers in '", spec.name,
                     "', found NaN or infinity, which have no place in an "
                     "order of magnitudes; lower the learning rate, or clip "
                     "gradients"));
  if (const int64_t zeros = CountZeros(values); zeros < weight.zeros)
    return absl::FailedPreconditionError(absl::StrCat(
        "expected the ", weight.zeros, " zeros of '", spec.name,
        "' to stay, found ", zeros,
        "; compile the model with --keep-zeros and the patterns of "
        "--prune-weights"));
  return values;
}

absl::Status Pruner::AfterStep(int64_t step) {
  const bool prunes = train::PrunesAfter(options_.schedule, step) &&
                      train::SparsityAfter(options_.schedule, step) > 0;
  if (!prunes && (first_ < 0 || step != first_ + 1)) return absl::OkStatus();
  std::vector<std::vector<float>> values;
  for (const Weight& weight : weights_) {
    absl::StatusOr<std::vector<float>> read = Read(weight);
    if (!read.ok())
      return absl::Status(read.status().code(),
                          absl::StrCat("--prune-schedule: step ", step, ": ",
                                       read.status().message()));
    values.push_back(*std::move(read));
  }
  if (!prunes) return absl::OkStatus();
  if (first_ < 0) first_ = step;
  return Prune(step, values);
}

absl::Status Pruner::Prune(int64_t step,
                           std::vector<std::vector<float>>& values) {
  const double share = train::SparsityAfter(options_.schedule, step);
  std::vector<float*> elements;
  for (std::vector<float>& weight : values) {
    for (float& value : weight) elements.push_back(&value);
    if (options_.is_global) continue;
    base::ZeroSmallest(elements, share);
    elements.clear();
  }
  if (options_.is_global) base::ZeroSmallest(elements, share);
  for (size_t i = 0; i < weights_.size(); ++i) {
    const base::TensorSpec& spec = weights_[i].spec;
    std::vector<char> stored(static_cast<size_t>(spec.bytes));
    base::Convert(base::DType::kF32, values[i].data(), spec.dtype,
                  stored.data(), static_cast<int64_t>(values[i].size()));
    PARTITA_RETURN_IF_ERROR(ranks_->WriteParameter(
        spec.name, {spec.dtype, spec.shape, stored.data()}));
    weights_[i].zeros = CountZeros(values[i]);
  }
  return absl::OkStatus();
}

}  // namespace partita::session
