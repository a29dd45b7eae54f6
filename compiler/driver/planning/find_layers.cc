// Turns a module into the planner's plain data. prepare_step.h makes the step,
// step_works.h finds its kernels, and the core's graph is the one used for
// dividing.
#include "compiler/driver/planning/find_layers.h"

#include <map>
#include <numeric>
#include <set>

#include "compiler/driver/planning/prepare_step.h"
#include "compiler/driver/planning/step_works.h"
#include "compiler/planner/layers/layer_names.h"
#include "compiler/sharding/dims.h"
#include "compiler/sharding/layer_paths.h"
#include "compiler/sharding/problem.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::Operation;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;
using sharding::LayerPaths;

// Optimizer states per parameter, as Adam has.
constexpr int kStates = 2;

class Finder {
 public:
  Finder(mlir::ModuleOp module, PreparedStep prepared)
      : module_(module),
        main_(module.lookupSymbol<FuncOp>("main")),
        problem_(std::move(prepared.problem)),
        paths_(module) {
    step_.mappings = std::move(prepared.mappings);
  }

  FailureOr<planner::StepGraph> run() {
    nameParts();
    for (FuncOp function : module_.getOps<FuncOp>()) addFunction(function);
    findLoss();
    walk(main_, paths_.inMain(), /*backward=*/false);
    orderLayers();
    if (step_.layers.empty())
      return main_.emitError(
                 "expected layers, told apart by the names of parameters, "
                 "found none: write the plan by hand"),
             failure();
    addHeld();
    addUnits();
    step_.graph = std::move(problem_.graph);
    return std::move(step_);
  }

 private:
  // Layers of the operations in one run of a function.
  struct RunLayers {
    llvm::DenseMap<Operation*, int> layers;
    std::map<Operation*, RunLayers> inside;  // of calls
  };

  std::string withoutParameter(const std::string& path) const {
    return parameters_.contains(path) ? path.substr(0, path.rfind('.')) : path;
  }

  // Names layers by parameters; by operations if parameters have no names.
  void nameParts() {
    bool named = false;
    for (mlir::BlockArgument argument : main_.getArguments()) {
      auto name = main_.getArgAttrOfType<mlir::StringAttr>(
          argument.getArgNumber(), nn::kNameAttr);
      if (!name) continue;
      parameters_.insert(name.getValue());
      if (!name.getValue().contains('.')) continue;
      names_.Add(withoutParameter(name.str()));
      named = true;
    }
    if (named) return;
    nameLayers(main_, paths_.inMain());
    for (const std::string& module : modules_)
      names_.Add(withoutParameter(module));
  }

  void nameLayers(FuncOp function, const LayerPaths::Paths& paths) {
    for (Operation& op : function.front().without_terminator()) {
      if (op.getNumResults() > 0)
        if (std::string path = paths.lookup(op.getResult(0)).path;
            !path.empty())
          modules_.insert(path);
      if (auto call = llvm::dyn_cast<CallOp>(op))
        nameLayers(calleeOf(call), paths_.inCallee(call, paths));
    }
  }

  FuncOp calleeOf(CallOp call) {
    return module_.lookupSymbol<FuncOp>(call.getCallee());
  }

  int idOf(Value value) const { return problem_.ids.lookup(value); }

  // --- Functions ---

  void addFunction(FuncOp function) {
    numbers_[function] = static_cast<int>(step_.functions.size());
    planner::StepFunction& made = step_.functions.emplace_back();
    made.name = function.getName().str();
    made.is_main = function == main_;
    for (Operation& op : function.front().without_terminator())
      if (auto found = problem_.operations.find(&op);
          found != problem_.operations.end())
        made.ops.push_back(found->second);
    FunctionWorks found = worksOf(function, problem_);
    made.works = std::move(found.works);
    heads_.push_back(std::move(found.heads));
    llvm::append_range(step_.halos, halosOf(function, problem_));
    made.joined = isUpdate(function);
    if (!made.joined || made.works.empty()) return;
    // Also reads and writes Adam's states, which are divided as the parameter.
    const int parameter = idOf(function.getArgument(0));
    for (auto* values : {&made.works[0].reads, &made.works[0].writes})
      values->insert(values->end(), kStates, parameter);
  }

  // True if the function only computes new values of parameters and states.
  // Such functions are joined into one launch if they are alike.
  bool isUpdate(FuncOp function) {
    bool called = false;
    for (CallOp call : main_.getOps<CallOp>()) {
      if (call.getCallee() != function.getName()) continue;
      called = true;
      if (!isUpdate(call)) return false;
    }
    return called;
  }

  bool isUpdate(Operation* op) {
    return !op->use_empty() &&
           llvm::all_of(op->getUsers(), [](Operation* user) {
             return user->hasTrait<mlir::OpTrait::IsTerminator>();
           });
  }

  // --- Runs ---

  // Finds the operation that computes the loss. All later ones are backward.
  void findLoss() {
    loss_ = main_.front().getTerminator()->getOperand(0).getDefiningOp();
  }

  int layerOf(const LayerPaths::Paths& paths, Operation* op) {
    std::string layer;
    if (op->getNumResults() > 0)
      layer =
          names_.LayerOf(withoutParameter(paths.lookup(op->getResult(0)).path));
    if (layer.empty() && !step_.layers.empty()) return latest_;
    if (layer.empty()) return 0;
    const auto [known, is_new] =
        layers_.try_emplace(layer, static_cast<int>(step_.layers.size()));
    if (is_new) {
      step_.layers.push_back(layer);
      step_.dims.emplace_back();
    }
    return latest_ = known->second;
  }

  // Records where the products of a layer begin, and where the layer ends. A
  // layer without products is ordered by its end, because operations on stored
  // data alone may be anywhere.
  void notePlace(Operation* op, int layer) {
    ++walked_;
    if (kindOf(op) != planner::WorkKind::kStream)
      product_at_.try_emplace(layer, walked_);
    ended_at_[layer] = walked_;
  }
  int placeOf(int layer) {
    const auto product = product_at_.find(layer);
    return product == product_at_.end() ? ended_at_[layer] : product->second;
  }

  void orderLayers() {
    std::vector<int> order(step_.layers.size()), number(order.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](int a, int b) {
      return std::make_pair(placeOf(a), a) < std::make_pair(placeOf(b), b);
    });
    auto layers = step_.layers;
    auto dims = step_.dims;
    for (auto [i, layer] : llvm::enumerate(order)) {
      number[layer] = static_cast<int>(i);
      step_.layers[i] = layers[layer];
      step_.dims[i] = dims[layer];
    }
    const auto renumber = [&](int& layer) {
      if (layer >= 0) layer = number[layer];
    };
    for (planner::StepRun& run : step_.runs) {
      llvm::for_each(run.layer_of_work, renumber);
      llvm::for_each(run.layer_of_op, renumber);
    }
    for (planner::StepMove& move : step_.moves) renumber(move.layer);
    for (planner::StepCrossing& crossing : step_.crossings) {
      renumber(crossing.from);
      renumber(crossing.to);
    }
    for (auto& [name, layer] : layers_) renumber(layer);
    for (auto& [value, layer] : layer_of_) renumber(layer);
  }

  RunLayers walk(FuncOp function, const LayerPaths::Paths& paths,
                 bool backward) {
    RunLayers here;
    for (Operation& op : function.front().without_terminator()) {
      if (auto call = llvm::dyn_cast<CallOp>(op)) {
        here.inside[&op] =
            walk(calleeOf(call), paths_.inCallee(call, paths), backward);
        here.layers[&op] = latest_;
        addMoves(call, here);
      } else {
        const int layer = here.layers[&op] = layerOf(paths, &op);
        if (!backward) notePlace(&op, layer);
        addDims(&op, layer);
      }
      addCrossings(&op, here);
      if (function != main_) continue;
      for (Value result : op.getResults())
        layer_of_[result] = giverOf(result, here);
      if (&op == loss_) backward = true;
    }
    const int number = numbers_.lookup(function);
    planner::StepRun& run = step_.runs.emplace_back();
    run.function = number;
    run.backward = backward && function != main_;
    for (Operation* head : heads_[number])
      run.layer_of_work.push_back(here.layers.lookup(head));
    for (Operation& op : function.front().without_terminator()) {
      const int layer = here.layers.lookup(&op);
      if (problem_.operations.count(&op)) run.layer_of_op.push_back(layer);
    }
    return here;
  }

  // The layer that computes a value; -1 if it is stored or an input.
  int giverOf(Value value, const RunLayers& here) {
    Operation* op = value.getDefiningOp();
    if (!op) return -1;
    auto call = llvm::dyn_cast<CallOp>(op);
    if (!call) return here.layers.lookup(op);
    Value returned = calleeOf(call).front().getTerminator()->getOperand(
        llvm::cast<mlir::OpResult>(value).getResultNumber());
    const int inside = giverOf(returned, here.inside.find(op)->second);
    return inside < 0 ? here.layers.lookup(op) : inside;
  }

  // The layer in which an operation uses its operand.
  int takerOf(mlir::OpOperand& use, const RunLayers& here) {
    auto call = llvm::dyn_cast<CallOp>(use.getOwner());
    if (!call) return here.layers.lookup(use.getOwner());
    Value argument = calleeOf(call).getArgument(use.getOperandNumber());
    const RunLayers& inside = here.inside.find(call)->second;
    for (mlir::OpOperand& use : argument.getUses())
      if (!use.getOwner()->hasTrait<mlir::OpTrait::IsTerminator>())
        return takerOf(use, inside);
    return here.layers.lookup(call);
  }

  void addMoves(CallOp call, const RunLayers& here) {
    FuncOp callee = calleeOf(call);
    for (mlir::OpOperand& operand : call->getOpOperands())
      step_.moves.push_back(
          {idOf(operand.get()),
           idOf(callee.getArgument(operand.getOperandNumber())),
           takerOf(operand, here), isUpdate(call)});
    for (mlir::OpResult result : call->getResults())
      step_.moves.push_back({idOf(callee.front().getTerminator()->getOperand(
                                 result.getResultNumber())),
                             idOf(result), giverOf(result, here),
                             isGradient(result)});
  }

  // True if only updates read the value.
  bool isGradient(Value value) {
    return !value.use_empty() &&
           llvm::all_of(value.getUsers(),
                        [&](Operation* user) { return isUpdate(user); });
  }

  void addCrossings(Operation* op, const RunLayers& here) {
    for (mlir::OpOperand& operand : op->getOpOperands()) {
      const int from = giverOf(operand.get(), here),
                to = takerOf(operand, here);
      if (from < 0 || from == to) continue;
      if (crossed_.insert({idOf(operand.get()), {from, to}}).second)
        step_.crossings.push_back({idOf(operand.get()), from, to});
    }
  }

  void addDims(Operation* op, int layer) {
    if (step_.layers.empty()) return;  // before the first layer
    for (Value result : op->getResults())
      if (auto dims = sharding::dimsOf(result))
        for (const sharding::Dim& dim : *dims) {
          if (!dim.segments.empty() && dim.segments.front().size > 1)
            step_.dims[layer].insert(dim.segments.front().name);
          if (!dim.role.empty()) step_.dims[layer].insert(dim.role);
        }
  }

  // --- Long-lived values ---

  void addHeld() {
    const LayerPaths::Paths paths = paths_.inMain();
    for (mlir::BlockArgument argument : main_.getArguments()) {
      const auto layer = layers_.find(
          names_.LayerOf(withoutParameter(paths.lookup(argument).path)));
      // Arguments without a layer of their own belong to the first layer.
      step_.held.push_back(
          {idOf(argument), layer == layers_.end() ? 0 : layer->second});
    }
    bool backward = false;
    for (Operation& op : main_.front().without_terminator()) {
      if (llvm::isa<CallOp>(op) && isUpdate(&op))
        step_.held.insert(step_.held.end(), kStates,
                          {idOf(op.getOperand(0)), layer_of_[op.getResult(0)]});
      for (Value result : op.getResults())
        if (isGradient(result) || (!backward && isReadBehindLoss(result)))
          step_.held.push_back({idOf(result), layer_of_[result]});
      if (&op == loss_) backward = true;
    }
  }

  bool isReadBehindLoss(Value value) const {
    return llvm::any_of(value.getUsers(), [&](Operation* user) {
      return loss_ && loss_->isBeforeInBlock(user) &&
             !user->hasTrait<mlir::OpTrait::IsTerminator>();
    });
  }

  void addUnits() {
    for (auto [id, value] : llvm::enumerate(problem_.values)) {
      const std::vector<int64_t>& shape = problem_.graph.values[id].shape;
      std::vector<int64_t> units = shape;
      if (auto dims = sharding::dimsOf(value))
        for (auto [i, dim] : llvm::enumerate(*dims)) {
          if (!dim.segments.empty() && dim.segments.front().size > 0)
            units[i] = dim.segments.front().size;
          if (dim.isNamed("B")) step_.batch = std::max(step_.batch, units[i]);
        }
      step_.units.push_back(std::move(units));
    }
  }

  mlir::ModuleOp module_;
  FuncOp main_;
  sharding::Problem problem_;
  const LayerPaths paths_;
  planner::StepGraph step_;
  planner::LayerNames names_;
  std::set<std::string> modules_;
  llvm::StringSet<> parameters_;
  llvm::DenseMap<Operation*, int> numbers_;     // of functions
  std::vector<std::vector<Operation*>> heads_;  // last operations of works
  std::map<std::string, int> layers_;
  llvm::DenseMap<Value, int> layer_of_;
  std::set<std::pair<int, std::pair<int, int>>> crossed_;
  Operation* loss_ = nullptr;
  int latest_ = 0;
  // Positions of layers in the forward pass, in operations.
  std::map<int, int> product_at_, ended_at_;
  int walked_ = 0;
};

}  // namespace

FailureOr<planner::StepGraph> findLayers(mlir::ModuleOp module,
                                         plan::Precision precision,
                                         Fault& fault) {
  mlir::OwningOpRef<mlir::ModuleOp> copy(module.clone());
  auto prepared = prepareStep(*copy, precision, fault);
  if (mlir::failed(prepared)) return failure();
  return Finder(*copy, std::move(*prepared)).run();
}

}  // namespace partita::driver
