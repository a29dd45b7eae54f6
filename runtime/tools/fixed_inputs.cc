// Combines fixed inputs and the tensors of another source in each batch.
#include "runtime/tools/fixed_inputs.h"

#include <cstring>
#include <set>

#include "runtime/base/status_macros.h"
#include "runtime/tools/host_tensor.h"

namespace partita::tools {
namespace {

using base::TensorSpec;
using data::Batch;
using data::BatchSource;

constexpr char kState[] = "fixed";

class FixedInputs : public BatchSource {
 public:
  explicit FixedInputs(std::vector<TensorSpec> specs)
      : specs_(std::move(specs)), from_(specs_.size(), {nullptr, 0}) {}

  absl::Status Fix(
      const std::vector<TensorSpec>& specs,
      const std::vector<std::pair<std::string, std::string>>& named) {
    InputSources sources;
    sources.named = named;
    PARTITA_ASSIGN_OR_RETURN(fixed_, MakeInputs(specs, sources));
    for (size_t i = 0; i < specs_.size(); ++i)
      for (const HostTensor& tensor : fixed_)
        if (tensor.spec().name == specs_[i].name) from_[i] = {&tensor, 0};
    return absl::OkStatus();
  }

  absl::Status Complete(std::unique_ptr<BatchSource> rest) {
    rest_ = std::move(rest);
    size_t index = 0;
    for (From& from : from_)
      if (from.fixed == nullptr) from.index = index++;
    PARTITA_ASSIGN_OR_RETURN(batch_, Batch::Allocate(rest_->specs()));
    return absl::OkStatus();
  }

  const std::vector<TensorSpec>& specs() const override { return specs_; }

  absl::Status Next(Batch& batch) override {
    if (rest_ != nullptr) PARTITA_RETURN_IF_ERROR(rest_->Next(batch_));
    for (size_t i = 0; i < specs_.size(); ++i) {
      const From& from = from_[i];
      std::memcpy(
          batch.data(i),
          from.fixed != nullptr ? from.fixed->data() : batch_.data(from.index),
          static_cast<size_t>(specs_[i].bytes));
    }
    return absl::OkStatus();
  }

  std::string State() const override {
    return rest_ != nullptr ? rest_->State() : kState;
  }
  absl::Status Restore(const std::string& state) override {
    if (rest_ != nullptr) return rest_->Restore(state);
    if (state == kState) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "expected a run on fixed inputs, found one with --data; give the same "
        "data");
  }

 private:
  struct From {
    const HostTensor* fixed;  // null: a tensor of the other source
    size_t index;
  };
  const std::vector<TensorSpec> specs_;
  std::vector<HostTensor> fixed_;
  std::unique_ptr<BatchSource> rest_;
  Batch batch_;
  std::vector<From> from_;  // by input
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> FixInputs(
    const std::vector<TensorSpec>& specs,
    const std::vector<std::pair<std::string, std::string>>& fixed,
    const MakeSource& rest) {
  if (fixed.empty()) return rest(specs);
  std::set<std::string> names;
  for (const auto& [name, content] : fixed) names.insert(name);
  std::vector<TensorSpec> same, others;
  for (const TensorSpec& spec : specs)
    (names.erase(spec.name) > 0 ? same : others).push_back(spec);
  if (!names.empty()) {
    InputSources sources;
    sources.named = {{*names.begin(), "zeros"}};
    return MakeInputs(specs, sources).status();
  }
  auto source = std::make_unique<FixedInputs>(specs);
  PARTITA_RETURN_IF_ERROR(source->Fix(same, fixed));
  if (!others.empty()) {
    PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<BatchSource> other, rest(others));
    PARTITA_RETURN_IF_ERROR(source->Complete(std::move(other)));
  }
  return std::unique_ptr<BatchSource>(std::move(source));
}

}  // namespace partita::tools
