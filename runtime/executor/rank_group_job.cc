// Implements the part of a group of ranks that other processes of a job share.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/block_map.h"
#include "runtime/executor/rank_group.h"
#include "runtime/program/types.h"

namespace partita::executor {

absl::StatusOr<std::unique_ptr<RankGroup>> RankGroup::LoadOne(
    std::shared_ptr<const program::Artifact> artifact,
    const RankOptions& options, int index, comm::Communicator& job) {
  std::unique_ptr<RankGroup> group(new RankGroup(artifact, 1));
  group->job_ = &job;
  PARTITA_ASSIGN_OR_RETURN(
      group->ranks_->list[0],
      Rank::Load(std::move(artifact), options, index, &job));
  std::vector<double> flops = {group->first().executor().FlopsPerRun()};
  PARTITA_RETURN_IF_ERROR(group->Combine(comm::Reduction::kSum, flops));
  group->flops_ = flops[0];
  return group;
}

absl::Status RankGroup::Combine(comm::Reduction reduction,
                                std::vector<double>& values) {
  if (job_ == nullptr) return absl::OkStatus();
  std::unique_ptr<comm::Collective>& collective =
      combined_[{reduction, values.size()}];
  if (collective == nullptr) {
    comm::Operation operation;
    operation.reduction = reduction;
    operation.dtype = base::DType::kF64;
    operation.input_shape =
        operation.output_shape = {static_cast<int64_t>(values.size())};
    operation.name = "values of all processes";
    std::vector<int> ranks(static_cast<size_t>(job_->size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    PARTITA_ASSIGN_OR_RETURN(
        collective, job_->Prepare(std::move(operation), std::move(ranks)));
  }
  return job_->Run(*collective, values.data(), values.data());
}

absl::Status RankGroup::Align() {
  return job_ == nullptr ? absl::OkStatus() : job_->Agree(absl::OkStatus(), 1);
}

absl::Status RankGroup::Agree(const absl::Status& status) {
  return job_ == nullptr ? status : job_->Agree(status);
}

absl::Status RankGroup::Max(std::vector<double>& values) {
  return Combine(comm::Reduction::kMax, values);
}

absl::Status RankGroup::GatherNumbers(
    const std::vector<MutableTensor>& outputs) {
  if (job_ == nullptr) return absl::OkStatus();
  return first().Gather(*job_, outputs, Rank::Which::kNumbers);
}

absl::Status RankGroup::Complete(const std::vector<MutableTensor>& outputs,
                                 std::vector<double>& times_ms) {
  if (job_ == nullptr) return absl::OkStatus();
  PARTITA_RETURN_IF_ERROR(first().Gather(*job_, outputs));
  return Max(times_ms);
}

absl::StatusOr<std::vector<std::string>> RankGroup::Warnings() {
  std::vector<std::string> texts;  // by rank, a line each
  for (const std::unique_ptr<Rank>& rank : ranks_->list)
    texts.push_back(absl::StrJoin(rank->Warnings(), "\n"));
  if (job_ != nullptr) {
    PARTITA_ASSIGN_OR_RETURN(texts, job_->GatherTexts(texts[0], "warnings"));
  }
  std::map<std::string, std::vector<size_t>> ranks;
  for (size_t rank = 0; rank < texts.size(); ++rank)
    for (const absl::string_view line :
         absl::StrSplit(texts[rank], '\n', absl::SkipEmpty()))
      ranks[std::string(line)].push_back(rank);
  std::vector<std::string> warnings;
  for (const auto& [text, of] : ranks)
    warnings.push_back(of.size() == texts.size()
                           ? text
                           : absl::StrCat(of.size() == 1 ? "rank " : "ranks ",
                                          absl::StrJoin(of, ", "), ": ", text));
  return warnings;
}

// Sums one row of numbers per process; each process fills its own row, the
// others are zero.
absl::StatusOr<std::vector<RankUse>> RankGroup::Uses() {
  std::vector<RankUse> uses;
  if (job_ == nullptr) {
    for (const std::unique_ptr<Rank>& rank : ranks_->list)
      uses.push_back(rank->executor().Use());
    return uses;
  }
  const RankUse own = first().executor().Use();
  const MemoryUse& memory = own.memory;
  const std::vector<double> numbers = {static_cast<double>(own.entry),
                                       static_cast<double>(own.steps),
                                       own.flops,
                                       static_cast<double>(memory.arena),
                                       static_cast<double>(memory.globals),
                                       static_cast<double>(memory.packed),
                                       static_cast<double>(memory.scratch),
                                       static_cast<double>(memory.staging),
                                       static_cast<double>(memory.mapped),
                                       static_cast<double>(memory.host),
                                       static_cast<double>(memory.files)};
  std::vector<double> all(numbers.size() * static_cast<size_t>(processes()), 0);
  std::copy(numbers.begin(), numbers.end(),
            all.begin() + rank() * static_cast<int64_t>(numbers.size()));
  PARTITA_RETURN_IF_ERROR(Combine(comm::Reduction::kSum, all));
  for (size_t i = 0; i < all.size(); i += numbers.size()) {
    const auto whole = [&](size_t j) {
      return static_cast<int64_t>(all[i + j]);
    };
    uses.push_back({static_cast<int>(whole(0)),
                    whole(1),
                    all[i + 2],
                    {whole(3), whole(4), whole(5), whole(6), whole(7), whole(8),
                     whole(9), whole(10)}});
  }
  return uses;
}

// The process with the first non-finite number returns the error.
absl::Status RankGroup::CheckFinite() {
  NumberKind worst = NumberKind::kFinite;
  for (const std::unique_ptr<Rank>& rank : ranks_->list)
    worst = std::max(worst, rank->executor().Outcome());
  std::vector<double> worst_of_all = {static_cast<double>(worst)};
  PARTITA_RETURN_IF_ERROR(Max(worst_of_all));
  worst = static_cast<NumberKind>(static_cast<int>(worst_of_all[0]));
  if (worst == NumberKind::kFinite) return absl::OkStatus();
  std::optional<NonFinite> found;
  for (const std::unique_ptr<Rank>& rank : ranks_->list) {
    std::optional<NonFinite> next = rank->executor().FindNonFinite(worst);
    if (next && (!found || next->order < found->order)) found = std::move(next);
  }
  const double order = found ? -static_cast<double>(found->order)
                             : -std::numeric_limits<double>::infinity();
  std::vector<double> first_of_all = {order};
  PARTITA_RETURN_IF_ERROR(Max(first_of_all));
  absl::Status status;
  if (order == first_of_all[0])
    status = absl::FailedPreconditionError(found ? found->text : kUntraced);
  return Agree(status);
}

RankGroup::Part RankGroup::PartOf(const ParameterSpec& parameter) const {
  if (job_ == nullptr) {
    const int64_t count = base::ElementCount(parameter.whole.shape).value_or(0);
    return {{{0, 0, count}}, parameter.whole};
  }
  Part part;
  part.spec = parameter.local;
  const program::Parameter& description =
      *program().parameters()->Get(static_cast<unsigned>(parameter.index));
  if (!program::HoldsFirstCopy(
          program(), description.shard(),
          program::EntriesThatHold(program(), program::Held::kParameter,
                                   static_cast<int64_t>(parameter.index)),
          rank()))
    return part;
  BlockMap(description.shard(), *description.type(), first().executor().place())
      .ForEachRun([&](int64_t whole, int64_t local, int64_t count) {
        part.runs.push_back({whole, local, count});
      });
  return part;
}

absl::Status RankGroup::ReadPart(const Part& part, void* memory) {
  const MutableTensor tensor = {part.spec.dtype, part.spec.shape, memory};
  return job_ == nullptr
             ? ReadParameter(part.spec.name, tensor)
             : first().executor().ReadParameter(part.spec.name, tensor);
}

program::Rows RankGroup::InputRows() const {
  constexpr program::Rows kUnknown = {0, 0};
  if (job_ == nullptr) return kUnknown;
  program::Rows rows = {std::numeric_limits<int64_t>::max(), 0};
  int64_t size = -1;
  for (int64_t i = 0; i < program::SizeOrZero(program().inputs()); ++i) {
    const program::Port& port =
        *program().inputs()->Get(static_cast<unsigned>(i));
    const TensorSpec& spec = inputs_[static_cast<size_t>(i)];
    if (port.role() != program::PortRole::data) continue;
    // A device's rows over all microbatches are not contiguous.
    if (port.model_shape() != nullptr || spec.shape.empty() ||
        (size >= 0 && spec.shape[0] != size))
      return kUnknown;
    size = spec.shape[0];
    program::Rows own = {0, size};
    if (port.shard() != nullptr)
      own = program::OwnedRows(*port.shard(), 0, first().executor().place());
    rows.begin = std::min(rows.begin, own.begin);
    rows.end = std::max(rows.end, own.end);
  }
  return rows.begin < rows.end ? rows : kUnknown;
}

}  // namespace partita::executor
