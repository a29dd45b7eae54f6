// Formats conflicts. A contender is a factor as one of the operation's tensors
// holds it.
#include "compiler/core/conflict.h"

#include <algorithm>

#include "compiler/core/projection.h"

namespace partita::core {
namespace {

class Words {
 public:
  Words(const Graph& graph, const Conflict& conflict)
      : graph_(graph),
        op_(graph.ops[conflict.op]),
        tensors_(TensorsOf(op_)),
        kept_(conflict.kept),
        lost_(conflict.lost) {}

  std::string Contested() const {
    return Reason() + (kept_.factor == op_.rule.experts ? RowsCompared() : "");
  }

  std::string Disagreement() const {
    std::string text =
        Capital(Name(kept_)) + " is divided over " +
        ToString(graph_.mesh, kept_.axes) + " and " + Name(lost_) + " over " +
        ToString(graph_.mesh, lost_.axes) + ": the first is kept";
    if (kept_.axis.priority < lost_.axis.priority)
      text += ", its entry (" + Entry(kept_) + ") comes before the other's (" +
              Entry(lost_) + ")";
    return text;
  }

  std::string OutOfScope() const {
    return Capital(Name(lost_)) + " is divided over " +
           ToString(graph_.mesh, lost_.axis) + " by an entry (" + Entry(lost_) +
           ") whose scope " + OpName() + " is outside of";
  }

  std::string NeededWhole(bool decomposes) const {
    return Capital(Name(lost_)) + " is divided over " +
           ToString(graph_.mesh, lost_.axes) + ", and " + OpName() +
           " needs it whole" + (decomposes ? " until decomposed" : "");
  }

  std::string ToHeads() const {
    return Capital(Name(lost_)) + " is divided over " +
           ToString(graph_.mesh, lost_.axes) + ". " + Capital(OpName()) +
           " divides its heads over " + ToString(graph_.mesh, lost_.axes) +
           " instead, so that each device has all keys of its heads";
  }

  std::string Behind() const {
    return Capital(Name(lost_)) + " holds a part of " +
           std::to_string(op_.rule.factors[lost_.factor].size) +
           " rows behind another that is not divided to single rows, so it "
           "cannot be divided over " +
           ToString(graph_.mesh, lost_.axis);
  }

 private:
  // Why the axis stays where it is.
  std::string Reason() const {
    std::string text = "Axis '" + ToString(graph_.mesh, kept_.axis) +
                       "' stays with " + Name(kept_) + ": ";
    if (kept_.axis.priority > lost_.axis.priority)
      return text + "this operation keeps it there, although the entry of " +
             Name(lost_) + " (" + Entry(lost_) + ") comes before it (" +
             Entry(kept_) + ")";
    if (kept_.axis.priority != lost_.axis.priority)
      return text + "its entry (" + Entry(kept_) + ") comes before that of " +
             Name(lost_) + " (" + Entry(lost_) + ")";
    if (kept_.bytes != lost_.bytes)
      return text + "moving it would cost " + std::to_string(kept_.bytes) +
             " bytes, moving " + Name(lost_) + " " +
             std::to_string(lost_.bytes);
    return text + "equal in all, it comes before " + Name(lost_);
  }

  // Why rows are gathered, where they could travel to their experts.
  std::string RowsCompared() const {
    if (op_.rows.gathered_bytes == 0) return "";
    return "; gathering rows moves " + std::to_string(op_.rows.gathered_bytes) +
           " bytes, sending each to its experts would move " +
           std::to_string(op_.rows.sent_bytes);
  }

  const Value& ValueOf(const Contender& who) const {
    return graph_.values[tensors_[who.tensor].value];
  }

  std::string TensorName(const Contender& who) const {
    const std::string& name = ValueOf(who).name;
    if (!name.empty()) return "'" + name + "'";
    const OpTensor& tensor = tensors_[who.tensor];
    return (tensor.is_result ? "result " : "operand ") +
           std::to_string(tensor.index);
  }

  // Formats as "dimension 1 (M) of 'up.weight'".
  std::string Name(const Contender& who) const {
    const TensorFactors& factors = *tensors_[who.tensor].factors;
    for (size_t d = 0; d < factors.size(); ++d) {
      if (std::count(factors[d].begin(), factors[d].end(), who.factor) == 0)
        continue;
      const std::vector<std::string>& names = ValueOf(who).dims;
      return "dimension " + std::to_string(d) +
             (d < names.size() && !names[d].empty() ? " (" + names[d] + ")"
                                                    : "") +
             " of " + TensorName(who);
    }
    return TensorName(who);
  }

  std::string Entry(const Contender& who) const {
    const int priority = who.axis.priority;
    if (priority == 0) return "an annotation or override";
    const size_t index = static_cast<size_t>(priority) - 1;
    return index < graph_.entries.size()
               ? graph_.entries[index]
               : "priority " + std::to_string(priority);
  }

  std::string OpName() const {
    return op_.name.empty() ? "the operation" : "'" + op_.name + "'";
  }

  static std::string Capital(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] -= 'a' - 'A';
    return text;
  }

  const Graph& graph_;
  const Op& op_;
  const std::vector<OpTensor> tensors_;
  const Contender& kept_;
  const Contender& lost_;
};

}  // namespace

bool Concerns(const Graph& graph, const Conflict& conflict, int tensor,
              const Sharding& has) {
  const Op& op = graph.ops[conflict.op];
  const OpTensor own = TensorsOf(op)[tensor];
  const TensorProjection projection =
      ProjectTensor(op.rule, *own.factors, graph.values[own.value].shape, has);
  const auto holds = [&](const Contender& who) {
    return OverlapAny(who.axis, projection.factors[who.factor].axes);
  };
  if (holds(conflict.lost)) return true;
  const Contender& kept = conflict.kept;
  return kept.factor >= 0 && projection.dims[kept.factor] >= 0 && !holds(kept);
}

std::string Describe(const Graph& graph, const Conflict& conflict) {
  const Words words(graph, conflict);
  switch (conflict.kind) {
    case ConflictKind::kContested:
      return words.Contested();
    case ConflictKind::kDisagreement:
      return words.Disagreement();
    case ConflictKind::kOutOfScope:
      return words.OutOfScope();
    case ConflictKind::kWhole:
      return words.NeededWhole(/*decomposes=*/false);
    case ConflictKind::kComposite:
      return words.NeededWhole(/*decomposes=*/true);
    case ConflictKind::kInexpressible:
      return words.Behind();
    case ConflictKind::kToHeads:
      return words.ToHeads();
  }
  return "";
}

}  // namespace partita::core
