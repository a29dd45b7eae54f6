// Evidence is used strongest first: operations with fixed meaning (attention,
// convolution), then inputs, then conclusions from names already given.
#include "compiler/sharding/find_names.h"

#include <set>

#include "compiler/sharding/model_structure.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {
namespace {

using llvm::SmallVector;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

constexpr char kNever[] = "";

mlir::RankedTensorType typeOf(Value value) {
  return mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
}

class Finder {
 public:
  Finder(mlir::ModuleOp module, const DimClasses& classes, Names& names)
      : module_(module),
        classes_(classes),
        structure_(module, classes),
        names_(names) {}

  void find() {
    each<nn::AttentionOp>([&](auto op) { nameHeads(op); });
    each<nn::SoftmaxOp>([&](auto op) { nameScores(op); });
    each<nn::ConvOp>([&](auto op) { nameImage(op); });
    each<nn::ExpertsOp>([&](auto op) { nameExperts(op); });
    nameInputs();
    each<nn::DotGeneralOp>([&](auto op) { nameHeadsOfScores(op); });
    spreadOverLinks();
    each<nn::AttentionOp>([&](auto op) { nameSequences(op); });
    spreadOverLinks();
    each<nn::GatherOp>([&](auto op) { nameEmbedding(op); });
    each<nn::GatherOp>([&](auto op) { nameClasses(op); });
    each<nn::DotGeneralOp>([&](auto op) { nameBatchOfParameters(op); });
    each<mlir::arith::AddFOp>([&](auto op) { nameResidual(op); });
    each<nn::CrossEntropyOp>([&](auto op) {
      name(op.getLogits(), typeOf(op.getLogits()).getRank() - 1, "V");
    });
    nameResults();
    nameHidden({"E"});
    // After M: a normalised value inside an MLP is not a stream.
    each<nn::LayerNormOp>([&](auto op) { nameNormalised(op); });
    each<nn::RmsNormOp>([&](auto op) { nameNormalised(op); });
    nameHidden({"E", "V"});
    each<nn::ConvOp>([&](auto op) { nameStem(op); });
    each<nn::ConvOp>([&](auto op) { nameChannels(op); });
    nameHidden({"E", "V"});
  }

 private:
  template <typename Op, typename Callback>
  void each(Callback callback) {
    module_.walk([&](Op op) { callback(op); });
  }

  // Names the first segment of a dimension.
  void name(Value value, int64_t dim, const std::string& name) {
    const std::vector<int> segments = classes_.segmentsOf(value, dim);
    if (!segments.empty()) names_.set(segments.front(), name);
  }
  bool isNamed(Value value, int64_t dim) const {
    const std::vector<int> segments = classes_.segmentsOf(value, dim);
    return segments.empty() || names_.isNamed(segments.front());
  }
  bool isNamed(Value value, int64_t dim, const std::string& name) const {
    const std::vector<int> segments = classes_.segmentsOf(value, dim);
    return !segments.empty() && names_.of(segments.front()) == name;
  }
  void nameAll(Value value, int64_t dim, const std::string& name) {
    for (int segment : classes_.segmentsOf(value, dim))
      names_.set(segment, name);
  }

  void nameHeads(nn::AttentionOp op) {
    for (Value operand : {op.getQ(), op.getK(), op.getV()}) {
      nameAll(operand, 3, kNever);
      nameAll(operand, 1, "N");
      name(operand, 0, "B");
    }
  }

  // Attention written out as operations: a product of two activations under a
  // softmax.
  void nameScores(nn::SoftmaxOp op) {
    Value source = structure_.sourceOf(op.getInput());
    auto dot =
        source ? source.getDefiningOp<nn::DotGeneralOp>() : nn::DotGeneralOp();
    if (!dot || structure_.isStored(dot.getLhs()) ||
        structure_.isStored(dot.getRhs()))
      return;
    for (int64_t dim : dot.getLhsContract()) nameAll(dot.getLhs(), dim, kNever);
    if (dot.getLhsBatch().size() == 2)
      nameAll(dot.getLhs(), dot.getLhsBatch()[1], "N");
  }

  // Attention in a program with its gradients, whose softmax is not one
  // operation: a product of two activations with heads beside the batch.
  void nameHeadsOfScores(nn::DotGeneralOp op) {
    if (op.getLhsBatch().size() != 2 || structure_.isStored(op.getLhs()) ||
        structure_.isStored(op.getRhs()) ||
        !isNamed(op.getLhs(), op.getLhsBatch()[0], "B") ||
        isNamed(op.getLhs(), op.getLhsBatch()[1]))
      return;
    name(op.getLhs(), op.getLhsBatch()[1], "N");
  }

  void nameSequences(nn::AttentionOp op) {
    for (Value operand : {op.getQ(), op.getK()}) {
      const std::vector<int> segments = classes_.segmentsOf(operand, 2);
      const bool is_image =
          segments.size() > 1 && llvm::all_of(segments, [&](int segment) {
            return names_.isNamed(segment);
          });
      if (is_image)
        names_.roles.emplace(segments, "L");
      else
        name(operand, 2, "L");
    }
  }

  void nameInputs() {
    auto main = module_.lookupSymbol<FuncOp>("main");
    if (!main) return;
    for (mlir::BlockArgument argument : main.getArguments()) {
      auto type = typeOf(argument);
      if (!structure_.isInput(argument) || !type || type.getRank() == 0)
        continue;
      name(argument, 0, "B");
      // Tokens or features. Inputs of convolutions already have names here.
      const bool is_integer = type.getElementType().isInteger();
      const int64_t last = type.getRank() - 1;
      if (type.getRank() == (is_integer ? 2 : 3) && !isNamed(argument, 1) &&
          (!isNamed(argument, last) || isNamed(argument, last, "E")))
        name(argument, 1, "L");
      if (!is_integer && (type.getRank() == 2 || type.getRank() == 3) &&
          !isNamed(argument, last))
        name(argument, last, "E");
    }
  }

  void nameImage(nn::ConvOp op) {
    if (structure_.isKernelGradient(op)) return;
    const int64_t rank = typeOf(op.getInput()).getRank();
    const int64_t first = op.getChannelsLast() ? 1 : 2;
    // Colour channels get no name and are never divided.
    if (auto image = mlir::dyn_cast<mlir::BlockArgument>(op.getInput()))
      if (structure_.isInput(image))
        nameAll(image, op.getChannelsLast() ? rank - 1 : 1, kNever);
    for (Value value : {Value(op.getInput()), Value(op.getResult())}) {
      name(value, 0, "B");
      if (rank == 3) name(value, first, "L");
      if (rank < 4) continue;
      name(value, first + rank - 4, "H");
      name(value, first + rank - 3, "W");
    }
  }

  // H and W persist through strides, L persists through slices.
  void spreadOverLinks() {
    const std::vector<std::pair<int, int>> linked = classes_.linked();
    const std::set<std::string> spread = {"H", "W", "L"};
    for (bool changed = true; changed;) {
      changed = false;
      for (auto [a, b] : linked) {
        if (names_.isNamed(a) == names_.isNamed(b)) continue;
        const auto [from, to] =
            names_.isNamed(a) ? std::make_pair(a, b) : std::make_pair(b, a);
        if (!spread.count(names_.of(from))) continue;
        names_.set(to, names_.of(from));
        changed = true;
      }
    }
  }

  // An embedding with one row per token. Tables of positions and of the few
  // token types are too small to divide.
  void nameEmbedding(nn::GatherOp op) {
    constexpr int64_t kFewRows = 16;
    auto type = typeOf(op.getInput());
    if (type.getRank() != 2 || op.getAxes() != llvm::ArrayRef<int64_t>{0} ||
        op.getBatchDims() != 0 || !type.getElementType().isFloat() ||
        !structure_.isStored(op.getInput()))
      return;
    // A table of attention biases has a column per head, which is named by now.
    if (!isNamed(op.getInput(), 1)) name(op.getInput(), 1, "E");
    if (type.getDimSize(0) >= kFewRows &&
        structure_.isMadeOfIntegerInputs(op.getIndices()))
      name(op.getInput(), 0, "V");
  }

  // A loss written out picks the target's value in each row.
  void nameClasses(nn::GatherOp op) {
    const int64_t last = typeOf(op.getInput()).getRank() - 1;
    if (last >= 1 && op.getAxes() == llvm::ArrayRef<int64_t>{last} &&
        static_cast<int64_t>(op.getBatchDims()) == last &&
        !structure_.isStored(op.getInput()) &&
        structure_.isMadeOfIntegerInputs(op.getIndices()))
      name(op.getInput(), last, "V");
  }

  // Gate, biases and, by residual sums, the result's width follow.
  void nameExperts(nn::ExpertsOp op) {
    name(op.getUp(), 0, "X");
    name(op.getUp(), 1, "M");
    name(op.getX(), typeOf(op.getX()).getRank() - 1, "E");
  }

  void nameBatchOfParameters(nn::DotGeneralOp op) {
    for (auto [operand, batch] :
         {std::make_pair(Value(op.getLhs()), op.getLhsBatch()),
          std::make_pair(Value(op.getRhs()), op.getRhsBatch())})
      if (structure_.isStored(operand))
        for (int64_t dim : batch) name(operand, dim, "X");
  }

  // The sum of a stream and a branch: if exactly one dimension is unnamed, it
  // is the stream's width. Sums without rows or pixels are of gradients.
  void nameResidual(mlir::arith::AddFOp op) {
    if (!structure_.joinsStreams(op)) return;
    SmallVector<int64_t> open;
    bool has_rows = false;
    auto type = typeOf(op.getResult());
    for (int64_t dim = 0; type && dim < type.getRank(); ++dim) {
      if (!isNamed(op.getResult(), dim)) open.push_back(dim);
      for (const char* rows : {"B", "L", "H", "W"})
        has_rows |= isNamed(op.getResult(), dim, rows);
    }
    if (open.size() == 1 && has_rows) name(op.getResult(), open.front(), "E");
  }

  // Results that are products, optionally with bias, are logits; others are
  // features.
  void nameResults() {
    auto main = module_.lookupSymbol<FuncOp>("main");
    if (!main || main.isExternal()) return;
    mlir::Operation* end = main.front().getTerminator();
    for (auto [i, result] : llvm::enumerate(end->getOperands())) {
      // New values of states have the names of the states.
      if (main.getResultAttr(static_cast<unsigned>(i), nn::kUpdatesAttr))
        continue;
      auto type = typeOf(result);
      if (!type || type.getRank() < 2 || isNamed(result, type.getRank() - 1))
        continue;
      const int last = classes_.segmentsOf(result, type.getRank() - 1).front();
      if (structure_.madeFrom(last).empty()) continue;
      name(result, type.getRank() - 1,
           structure_.isProductWithBias(result) ? "V" : "E");
    }
  }

  // M: a width made from another width by a product with parameters, and made
  // into a width named in `streams` by another. Detours that only lead back
  // (squeeze and excite) do not count.
  void nameHidden(const std::set<std::string>& streams) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [segment, targets] : structure_.madeInto()) {
        if (names_.isNamed(segment) || !comesFromWidth(segment) ||
            !leadsTo(streams, segment, targets))
          continue;
        names_.set(segment, "M");
        changed = true;
      }
    }
  }

  bool comesFromWidth(int segment) const {
    return llvm::any_of(structure_.madeFrom(segment), [&](int source) {
      return !names_.isNamed(source) || names_.of(source) != kNever;
    });
  }

  bool leadsTo(const std::set<std::string>& streams, int segment,
               const std::set<int>& targets) {
    bool leads = false;
    for (int target : targets) {
      if (streams.count(names_.of(target))) {
        leads = true;
        continue;
      }
      const std::set<int> only = {segment};
      if (structure_.madeFrom(target) != only ||
          structure_.madeInto(target) != only)
        return false;
    }
    return leads;
  }

  template <typename Op>
  void nameNormalised(Op op) {
    const int64_t last = typeOf(op.getInput()).getRank() - 1;
    if (static_cast<int64_t>(op.getAxis()) == last &&
        !isNamed(op.getInput(), last))
      name(op.getInput(), last, "E");
  }

  static int64_t channelOf(nn::ConvOp op) {
    return op.getChannelsLast() ? typeOf(op.getResult()).getRank() - 1 : 1;
  }

  // A width made from colours, and made into exactly one other width, is hidden
  // like the width of an MLP: the stream begins with that other width.
  void nameStem(nn::ConvOp op) {
    if (structure_.isKernelGradient(op)) return;
    const std::vector<int> segments =
        classes_.segmentsOf(op.getResult(), channelOf(op));
    if (segments.empty() || names_.isNamed(segments.front())) return;
    const int stem = segments.front();
    const std::set<int>& targets = structure_.madeInto(stem);
    if (structure_.madeFrom(stem).empty() || comesFromWidth(stem) ||
        targets.size() != 1 || targets.count(stem))
      return;
    const int target = *targets.begin();
    if (!names_.isNamed(target) || names_.of(target) == "E")
      names_.set(stem, "M");
  }

  // Names the remaining channels of images E. Excludes single pixels: gates are
  // computed from them.
  void nameChannels(nn::ConvOp op) {
    if (structure_.isKernelGradient(op)) return;
    auto type = typeOf(op.getResult());
    const int64_t channel = channelOf(op);
    if (type.getNumElements() == type.getDimSize(0) * type.getDimSize(channel))
      return;
    if (!isNamed(op.getResult(), channel)) name(op.getResult(), channel, "E");
  }

  mlir::ModuleOp module_;
  const DimClasses& classes_;
  ModelStructure structure_;
  Names& names_;
};

}  // namespace

void Names::set(int segment, const std::string& name) {
  auto [place, inserted] = of_segment.emplace(segment, name);
  if (!inserted && place->second != name)
    ambiguities.push_back({segment, place->second, name});
}

void findNames(mlir::ModuleOp module, const DimClasses& classes, Names& names) {
  Finder(module, classes, names).find();
}

}  // namespace partita::sharding
