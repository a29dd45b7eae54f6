// Translates mesh axes to ranks.
#include "runtime/executor/collective_desc.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/dtype.h"
#include "runtime/program/types.h"

namespace partita::executor {
namespace {

std::string AxisNames(const program::AxisList* axes,
                      const program::Mesh* mesh) {
  std::string names;
  for (int64_t i = 0; i < program::SizeOrZero(axes); ++i) {
    const program::AxisPart& part = *axes->Get(static_cast<unsigned>(i));
    const program::MeshAxis& axis =
        *mesh->axes()->Get(static_cast<unsigned>(part.axis()));
    absl::StrAppend(&names, i > 0 ? "," : "", axis.name()->str());
    if (part.size() != axis.size())
      absl::StrAppend(&names, ":(", part.pre(), ")", part.size());
  }
  return names;
}

// Member i receives from the device of the group whose index along the source
// axes is i minus the offset, modulo the size of the group.
std::vector<int> SourcesOf(const program::Collective& collective,
                           const program::MeshPlace& place) {
  const std::vector<int64_t> group = place.GroupAlong(collective.axes());
  std::vector<int> sources;
  for (const int64_t rank : place.GroupAlong(collective.source_axes()))
    sources.push_back(static_cast<int>(
        std::find(group.begin(), group.end(), rank) - group.begin()));
  const int64_t n = static_cast<int64_t>(sources.size());
  const int64_t first = (collective.offset() % n + n) % n;
  std::rotate(sources.begin(), sources.end() - first, sources.end());
  return sources;
}

}  // namespace

comm::Kind ToKind(program::CollectiveKind kind) {
  switch (kind) {
    case program::CollectiveKind::all_reduce:
      return comm::Kind::kAllReduce;
    case program::CollectiveKind::all_gather:
      return comm::Kind::kAllGather;
    case program::CollectiveKind::reduce_scatter:
      return comm::Kind::kReduceScatter;
    case program::CollectiveKind::all_to_all:
      return comm::Kind::kAllToAll;
    case program::CollectiveKind::all_slice:
      return comm::Kind::kAllSlice;
    case program::CollectiveKind::exchange:
      return comm::Kind::kExchange;
    case program::CollectiveKind::permute:
      return comm::Kind::kPermute;
    case program::CollectiveKind::send_rows:
      return comm::Kind::kSendRows;
    case program::CollectiveKind::return_rows:
      return comm::Kind::kReturnRows;
    case program::CollectiveKind::broadcast:
      break;
  }
  return comm::Kind::kBroadcast;
}

comm::Reduction ToReduction(program::Reduction reduction) {
  switch (reduction) {
    case program::Reduction::sum:
      return comm::Reduction::kSum;
    case program::Reduction::prod:
      return comm::Reduction::kProd;
    case program::Reduction::max:
      return comm::Reduction::kMax;
    case program::Reduction::min:
      return comm::Reduction::kMin;
    case program::Reduction::any:
      return comm::Reduction::kAny;
    case program::Reduction::all:
      break;
  }
  return comm::Reduction::kAll;
}

comm::Operation ToOperation(const program::Collective& collective,
                            const std::string& name,
                            const program::MeshPlace& place) {
  comm::Operation operation;
  operation.kind = ToKind(collective.kind());
  operation.reduction = ToReduction(collective.reduction());
  operation.dtype = program::ToBase(collective.dtype());
  operation.input_shape = program::ToVector(collective.input_shape());
  operation.output_shape = program::ToVector(collective.output_shape());
  operation.dim = collective.dim();
  operation.other_dim = collective.other_dim();
  operation.size = collective.size();
  operation.step = collective.step();
  operation.offset = collective.offset();
  operation.fill = collective.fill();
  operation.root = static_cast<int>(collective.root());
  operation.name = name;
  if (collective.kind() == program::CollectiveKind::permute)
    operation.sources = SourcesOf(collective, place);
  return operation;
}

std::vector<int> GroupOf(const program::Collective& collective,
                         const program::MeshPlace& place) {
  std::vector<int> ranks;
  for (const int64_t rank : place.GroupAlong(collective.axes()))
    ranks.push_back(static_cast<int>(rank));
  return ranks;
}

std::optional<TransferDesc> TransferOf(const program::Instruction& instruction,
                                       const program::MeshPlace& place) {
  const auto describe = [&](const auto& transfer, bool sends) {
    const int64_t own = place.IndexAlong(transfer.axes());
    const int64_t from = sends ? own : transfer.peer();
    const int64_t to = sends ? transfer.peer() : own;
    const std::vector<int64_t> group = place.GroupAlong(transfer.axes());
    TransferDesc desc;
    desc.operation.kind = comm::Kind::kTransfer;
    desc.operation.dtype = program::ToBase(transfer.dtype());
    desc.operation.input_shape = desc.operation.output_shape =
        program::ToVector(transfer.shape());
    desc.operation.name = absl::StrCat("entry ", from, " to entry ", to);
    for (const int64_t index : {from, to})
      desc.ranks.push_back(static_cast<int>(group[static_cast<size_t>(index)]));
    return desc;
  };
  if (const program::Send* send = instruction.operation_as_Send())
    return describe(*send, true);
  if (const program::Receive* receive = instruction.operation_as_Receive())
    return describe(*receive, false);
  return std::nullopt;
}

StepLabel LabelOf(const TransferDesc& transfer, const program::Program& program,
                  const program::MeshPlace& place) {
  const bool sends = transfer.ranks[0] == static_cast<int>(place.rank());
  const program::MeshPlace peer(program.mesh(), transfer.ranks[sends ? 1 : 0]);
  StepLabel label;
  label.name = absl::StrCat(
      sends ? "send " : "receive ",
      base::TypeName(transfer.operation.dtype, transfer.operation.input_shape),
      sends ? " to entry " : " from entry ",
      peer.IndexAlong(program.pipeline()));
  label.bytes = static_cast<double>(transfer.operation.InputBytes());
  return label;
}

StepLabel LabelOf(const program::Collective& collective,
                  const program::Mesh* mesh, const program::MeshPlace& place) {
  const comm::Operation operation = ToOperation(collective, "", place);
  const bool reduces = operation.kind == comm::Kind::kAllReduce ||
                       operation.kind == comm::Kind::kReduceScatter;
  StepLabel label;
  label.name = absl::StrCat(
      comm::NameOf(operation.kind), reduces ? " " : "",
      reduces ? program::EnumNameReduction(collective.reduction()) : "", " ",
      base::TypeName(operation.dtype, operation.input_shape));
  if (operation.input_shape != operation.output_shape)
    absl::StrAppend(&label.name, " to ",
                    base::TypeName(operation.dtype, operation.output_shape));
  absl::StrAppend(&label.name, " over ", AxisNames(collective.axes(), mesh));
  const comm::Traffic traffic = comm::TrafficOf(
      operation, static_cast<int>(program::GroupSize(collective.axes())),
      static_cast<int>(place.IndexAlong(collective.axes())));
  label.bytes = static_cast<double>(traffic.sent + traffic.received);
  return label;
}

}  // namespace partita::executor
