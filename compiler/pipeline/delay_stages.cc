// Builds a step that does not wait for its pipeline to drain; see passes.td.
//
// This is retiming. A step has one slot per microbatch. Each stage runs a
// number of slots later than the first stage. Work that falls into the next
// step reads values of this step from states.
#include <cmath>
#include <map>
#include <optional>

#include "compiler/autodiff/call_marks.h"
#include "compiler/pipeline/delayed_states.h"
#include "compiler/pipeline/passes.h"
#include "compiler/pipeline/placement.h"
#include "dialects/nn/math_builder.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace partita::pipeline {

#define GEN_PASS_DEF_DELAYSTAGESPASS
#include "compiler/pipeline/passes.h.inc"

namespace {

using autodiff::kBackwardAttr;
using autodiff::kMicrobatchAttr;
using autodiff::kStageAttr;
using llvm::SmallVector;
using mlir::BlockArgument;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

bool isMarked(Operation* op) {
  return llvm::isa<CallOp>(op) &&
         op->hasAttrOfType<mlir::IntegerAttr>(kStageAttr);
}

int64_t markOf(Operation* op, const char* name) {
  auto mark = op->getAttrOfType<mlir::IntegerAttr>(name);
  return mark ? mark.getInt() : 0;
}

class DelayStages : public impl::DelayStagesPassBase<DelayStages> {
 public:
  using DelayStagesPassBase::DelayStagesPassBase;

  void runOnOperation() override {
    main_ = getOperation().lookupSymbol<FuncOp>("main");
    if (!main_) {
      getOperation().emitError("expected a function named 'main', found none");
      return signalPassFailure();
    }
    states_.emplace(main_);
    if (mlir::failed(run())) signalPassFailure();
  }

 private:
  // The time of an operation of a step's microbatches: the number of steps
  // later, and the slot in that step.
  struct Time {
    int64_t steps = 0, slot = 0;
    int64_t stage = -1;  // -1: any
  };

  LogicalResult run() {
    if (weights != "previous" && weights != "newest")
      return main_.emitError(
                 "expected weights to be previous or newest, found '")
             << weights << "'";
    measure();
    if (stages_ <= 1) return success();
    if (weights == "previous" && slots_ < stages_ - 1)
      return main_.emitError("expected at least ")
             << stages_ - 1 << " microbatches for " << stages_
             << " stages that keep one version of the weights besides the "
                "newest, found "
             << slots_;
    findFixed();
    for (Operation& op : main_.front().without_terminator()) {
      if (mlir::failed(setTime(&op))) return failure();
      body_.push_back(&op);
    }
    findUpdates();
    if (mlir::failed(findDelays())) return failure();
    maskResults();
    for (Operation* op : body_)
      if (mlir::failed(delayOperands(op))) return failure();
    if (rate_steps > 0 && mlir::failed(slowDown())) return failure();
    states_->declare();
    reorder();
    return success();
  }

  void measure() {
    for (Operation& op : main_.front())
      if (isMarked(&op)) {
        stages_ = std::max(stages_, markOf(&op, kStageAttr) + 1);
        slots_ = std::max(slots_, markOf(&op, kMicrobatchAttr) + 1);
      }
  }

  llvm::StringRef text(unsigned argument, const char* name) {
    auto attr = main_.getArgAttrOfType<mlir::StringAttr>(argument, name);
    return attr ? attr.getValue() : llvm::StringRef();
  }
  llvm::StringRef updated(unsigned result) {
    auto attr =
        main_.getResultAttrOfType<mlir::StringAttr>(result, nn::kUpdatesAttr);
    return attr ? attr.getValue() : llvm::StringRef();
  }

  // Finds values that are equal in every step, and the learning rate.
  void findFixed() {
    llvm::StringMap<bool> changes;
    for (unsigned i = 0; i < main_.getNumResults(); ++i)
      changes[updated(i)] = true;
    for (BlockArgument argument : main_.getArguments()) {
      const unsigned i = argument.getArgNumber();
      if (text(i, nn::kRoleAttr) == "learning_rate") rate_ = argument;
      if (text(i, nn::kKindAttr) != "input" &&
          !changes.count(text(i, nn::kNameAttr)))
        fixed_.insert(argument);
    }
    for (Operation& op : main_.front().without_terminator())
      if (!llvm::isa<CallOp>(op) &&
          llvm::all_of(op.getOperands(),
                       [&](Value value) { return fixed_.contains(value); }))
        fixed_.insert(op.result_begin(), op.result_end());
  }

  // Returns the number of slots since the step's first slot.
  int64_t slotsOf(Operation* op) const {
    auto found = times_.find(op);
    return found == times_.end()
               ? 0
               : found->second.steps * slots_ + found->second.slot;
  }

  // A stage's forward is delayed by one slot per earlier stage. All backwards
  // run when the last stage's do.
  LogicalResult setTime(Operation* op) {
    int64_t ready = 0, stage = -1;
    for (Value operand : op->getOperands())
      if (Operation* producer = operand.getDefiningOp()) {
        ready = std::max(ready, slotsOf(producer));
        if (times_[producer].stage >= 0) stage = times_[producer].stage;
      }
    int64_t slots = ready;
    if (isMarked(op)) {
      stage = markOf(op, kStageAttr);
      slots = markOf(op, kMicrobatchAttr) +
              (op->hasAttr(kBackwardAttr) ? stages_ - 1 : stage);
      if (slots < ready)
        return op->emitOpError("reads a value that is computed ")
               << ready - slots
               << " microbatches later, but stages do not wait for the end "
                  "of a step; take a schedule that does";
    }
    times_[op] = {slots / slots_, slots % slots_, stage};
    return success();
  }

  Time timeOf(Value value) const {
    Operation* producer = value.getDefiningOp();
    return producer ? times_.lookup(producer) : Time();
  }

  void findUpdates() {
    llvm::StringMap<Value> values;
    for (auto [i, value] :
         llvm::enumerate(main_.front().getTerminator()->getOperands()))
      if (!updated(i).empty()) values[updated(i)] = value;
    for (BlockArgument argument : main_.getArguments()) {
      Value value = values.lookup(text(argument.getArgNumber(), nn::kNameAttr));
      if (!value) continue;
      updates_[argument] = value;
      // A parameter is updated on the stage that uses it first.
      Operation* update = value.getDefiningOp();
      if (!update || isMarked(update)) continue;
      int64_t first = stages_;
      for (Operation* user : argument.getUsers())
        if (isMarked(user)) first = std::min(first, times_[user].stage);
      if (first < stages_) times_[update].stage = first;
    }
  }

  // Masks results of steps before the first: no update, and zero otherwise.
  void maskResults() {
    Operation* terminator = main_.front().getTerminator();
    llvm::DenseMap<Value, Value> arguments;
    for (auto [argument, value] : updates_) arguments[value] = argument;
    for (auto [i, value] :
         llvm::enumerate(SmallVector<Value>(terminator->getOperands()))) {
      const Time time = timeOf(value);
      if (time.steps == 0) continue;
      mlir::OpBuilder builder(terminator);
      nn::MathBuilder math(builder, value.getLoc());
      Operation* before = terminator->getPrevNode();
      const auto type = nn::MathBuilder::typeOf(value);
      Value other = arguments.lookup(value);
      if (updated(i).empty()) other = Value();
      if (!other) other = zero(builder, value.getLoc(), type);
      Value masked = math.select(
          math.broadcast(started(time),
                         RankedTensorType::get(type.getShape(), math.i1()), {}),
          value, other);
      noteAdded(before, time);
      terminator->setOperand(i, masked);
      if (auto argument = llvm::dyn_cast<BlockArgument>(other))
        updates_[argument] = masked;
    }
  }

  static Value zero(mlir::OpBuilder& builder, mlir::Location loc,
                    RankedTensorType type) {
    return mlir::arith::ConstantOp::create(
        builder, loc, llvm::cast<mlir::TypedAttr>(builder.getZeroAttr(type)));
  }

  // True (i1) if results exist at `time`: step 0 has passed all stages. Each
  // stage counts its own steps.
  Value started(Time time) {
    const int64_t stage = std::max<int64_t>(time.stage, 0);
    Value& known = started_[{time.steps, stage}];
    if (known) return known;
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(&main_.front());
    nn::MathBuilder math(builder, main_.getLoc());
    const auto type = RankedTensorType::get({}, builder.getI64Type());
    known = math.compare(mlir::arith::CmpIPredicate::sge, stepsOf(stage),
                         math.constantInt(type, time.steps));
    return known;
  }

  // Returns the number of steps before this one.
  Value stepsOf(int64_t stage) {
    Value& steps = steps_[stage];
    if (steps) return steps;
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(&main_.front());
    nn::MathBuilder math(builder, main_.getLoc());
    const std::string name = std::to_string(stage) + ".steps";
    steps = states_->add(RankedTensorType::get({}, builder.getI64Type()), name);
    states_->update(name, math.addInt(steps, 1));
    return steps;
  }

  LogicalResult delayOperands(Operation* op) {
    for (mlir::OpOperand& operand : op->getOpOperands()) {
      if (fixed_.contains(operand.get())) continue;
      auto argument = llvm::dyn_cast<BlockArgument>(operand.get());
      if (argument && updates_.count(argument)) {
        FailureOr<Value> version = versionFor(op, argument);
        if (mlir::failed(version)) return failure();
        operand.set(*version);
      } else {
        operand.set(states_->delayed(
            operand.get(), times_[op].steps - timeOf(operand.get()).steps,
            times_[op].stage));
      }
    }
    return success();
  }

  // Returns the version that `op` reads of a tensor that steps update.
  FailureOr<Value> versionFor(Operation* op, BlockArgument argument) {
    Value update = updates_[argument];
    const Time own = times_[op], end = timeOf(update);
    int64_t age = own.steps + 1 - end.steps;  // 0: this step's update
    if (text(argument.getArgNumber(), nn::kKindAttr) == "parameter" &&
        (isMarked(op) || own.steps == 0)) {
      age += 1;
      if (isMarked(op) && weights == "newest") age = newestFor(op, end);
      if (isCorrected(op)) return corrected(op, argument, age);
    }
    noteAge(op, argument, age + end.steps - own.steps - 1);
    if (age > 0) return states_->delayed(argument, age - 1, own.stage);
    if (age == 0 && end.slot < own.slot) return update;
    return op->emitOpError("reads '")
               << text(argument.getArgNumber(), nn::kNameAttr)
               << "', which is computed later, but stages do not wait for "
                  "the end of a step; take a schedule that does",
           failure();
  }

  // Records by how many updates a forward's weights are older than with
  // flushes.
  void noteAge(Operation* op, BlockArgument argument, int64_t updates) {
    if (!isMarked(op) || op->hasAttr(kBackwardAttr) ||
        text(argument.getArgNumber(), nn::kKindAttr) != "parameter")
      return;
    Age& age = ages_[markOf(op, kStageAttr)];
    age.updates += static_cast<double>(updates);
    age.reads += 1;
  }

  // Divides the learning rate of a stage with old weights by their age at
  // first, and restores it during the first updates (PipeMare's first
  // technique).
  LogicalResult slowDown() {
    if (!rate_)
      return main_.emitError(
          "expected an input with the role learning_rate, found none");
    double oldest = 0;
    for (const auto& [stage, age] : ages_)
      oldest = std::max(oldest, age.mean());
    if (oldest <= 1)
      return main_.emitError(
                 "--pipemare: expected weights that are more than "
                 "one update old, found at most ")
             << llvm::formatv("{0:f2}", oldest).str()
             << "; take --schedule async with fewer microbatches than stages "
                "behind the first, or no --pipemare";
    for (Operation* op : body_) {
      const Time time = times_[op];
      const auto age = ages_.find(time.stage);
      if (age == ages_.end() || age->second.mean() <= 1) continue;
      Value own = time.steps == 0 ? rate_ : states_->lookup(rate_, time.steps);
      for (mlir::OpOperand& operand : op->getOpOperands())
        if (own && operand.get() == own)
          operand.set(slowedRate(own, time, age->second.mean()));
    }
    return success();
  }

  // Returns rate * age^-(1 - updates so far / rate_steps).
  Value slowedRate(Value rate, Time time, double age) {
    Value& known = rates_[{time.steps, time.stage}];
    if (known) return known;
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(&main_.front());
    nn::MathBuilder math(builder, main_.getLoc());
    Value steps = stepsOf(time.stage);
    const auto type = nn::MathBuilder::typeOf(rate);
    Value done =
        math.toFloat(math.addInt(steps, -time.steps), type.getElementType());
    Value rest = math.subtract(
        math.constant(type, 1),
        math.divide(done, static_cast<double>(rate_steps.getValue())));
    rest = mlir::arith::MaximumFOp::create(builder, main_.getLoc(), rest,
                                           math.constant(type, 0));
    rest = mlir::arith::MinimumFOp::create(builder, main_.getLoc(), rest,
                                           math.constant(type, 1));
    return known = math.multiply(rate,
                                 math.exp(math.multiply(rest, -std::log(age))));
  }

  // Returns the age of the newest version when the microbatch reaches the
  // stage.
  int64_t newestFor(Operation* op, Time end) const {
    const int64_t forward =
        markOf(op, kMicrobatchAttr) + markOf(op, kStageAttr);
    const int64_t later = times_.lookup(op).steps - forward / slots_;
    return later + (forward % slots_ > end.slot ? 0 : 1);
  }

  bool isCorrected(Operation* op) const {
    return correction > 0 && isMarked(op) && op->hasAttr(kBackwardAttr);
  }

  // Returns by how many updates a gradient's forward weights are older than the
  // newest weights when the gradient is computed. `newestAt` is 0 if this
  // step's update is already done, else 1.
  int64_t delayOf(Operation* op, Time end) const {
    return newestFor(op, end) - newestAt(op, end);
  }
  int64_t newestAt(Operation* op, Time end) const {
    return times_.lookup(op).slot > end.slot ? 0 : 1;
  }

  // Measures delays of all gradients that read a parameter, before operands are
  // replaced.
  LogicalResult findDelays() {
    if (correction == 0) return success();
    if (weights != "newest" || correction < 0 || correction >= 1)
      return main_.emitError(
                 "correction: expected a number from 0 to below 1, "
                 "and weights=newest, found ")
             << correction.getValue() << " and weights=" << weights;
    for (Operation* op : body_) {
      if (!isCorrected(op)) continue;
      for (Value operand : op->getOperands()) {
        auto argument = llvm::dyn_cast<BlockArgument>(operand);
        if (!argument || !updates_.count(argument)) continue;
        Age& delay = delays_[argument];
        delay.updates +=
            static_cast<double>(delayOf(op, timeOf(updates_[argument])));
        delay.reads += 1;
      }
    }
    return success();
  }

  // Returns a substitute for the forward's weights: the newest weights minus
  // the moving average of updates, times the number of updates in between
  // (PipeMare's second technique).
  Value corrected(Operation* op, BlockArgument argument, int64_t age) {
    const Time end = timeOf(updates_[argument]);
    const int64_t newest = newestAt(op, end);
    Value now = newest == 0 ? updates_[argument] : Value(argument);
    if (age == newest) return now;
    if (Value known = corrected_.lookup({now, age - newest})) return known;
    const MovingAverage average = averageOf(argument);
    mlir::OpBuilder builder =
        newest == 0 ? mlir::OpBuilder(main_.front().getTerminator())
                    : mlir::OpBuilder::atBlockBegin(&main_.front());
    nn::MathBuilder math(builder, argument.getLoc());
    Operation* before = main_.front().getTerminator()->getPrevNode();
    Value value = math.narrow(
        math.subtract(math.widen(now),
                      math.multiply(newest == 0 ? average.next : average.now,
                                    static_cast<double>(age - newest))),
        nn::MathBuilder::typeOf(argument));
    if (newest == 0) noteAdded(before, end);
    corrected_[{now, age - newest}] = value;
    return value;
  }

  // Moving average of a parameter's updates, in at least 32 bits.
  struct MovingAverage {
    Value now, next;  // before and after this step's update
  };

  MovingAverage averageOf(BlockArgument argument) {
    MovingAverage& known = averages_[argument];
    if (known.now) return known;
    Value update = updates_[argument];
    const Time end = timeOf(update);
    mlir::OpBuilder builder(main_.front().getTerminator());
    nn::MathBuilder math(builder, argument.getLoc());
    Operation* before = main_.front().getTerminator()->getPrevNode();
    Value change = math.subtract(math.widen(update), math.widen(argument));
    const std::string name = std::to_string(std::max<int64_t>(end.stage, 0)) +
                             ".change." +
                             text(argument.getArgNumber(), nn::kNameAttr).str();
    known.now = states_->add(change.getType(), name);
    const double kept = std::pow(correction, 1 / delays_[argument].mean());
    known.next = math.add(math.multiply(known.now, kept),
                          math.multiply(change, 1 - kept));
    noteAdded(before, end);
    states_->update(name, known.next);
    return known;
  }

  // Assigns `time` to the operations appended after `before`.
  void noteAdded(Operation* before, Time time) {
    Operation* terminator = main_.front().getTerminator();
    for (Operation* op = before->getNextNode(); op != terminator;
         op = op->getNextNode()) {
      times_[op] = time;
      added_.push_back(op);
    }
  }

  // Sorts by slot. The sort is stable, so added operations stay after their
  // operands.
  void reorder() {
    Operation* terminator = main_.front().getTerminator();
    llvm::append_range(body_, added_);
    llvm::stable_sort(body_, [&](Operation* a, Operation* b) {
      return times_[a].slot < times_[b].slot;
    });
    for (Operation* op : body_) op->moveBefore(terminator);
  }

  // Age, in updates, of the weights that a stage's forwards read.
  struct Age {
    double updates = 0, reads = 0;
    double mean() const { return updates / reads; }
  };

  FuncOp main_;
  int64_t stages_ = 0, slots_ = 1;  // one slot per microbatch
  llvm::DenseSet<Value> fixed_;
  Value rate_;  // learning rate; null if absent
  SmallVector<Operation*> body_, added_;
  llvm::DenseMap<Operation*, Time> times_;
  llvm::DenseMap<BlockArgument, Value> updates_;
  std::map<std::pair<int64_t, int64_t>, Value> started_;  // by steps and stage
  std::map<int64_t, Value> steps_;                      // steps done, by stage
  std::map<int64_t, Age> ages_;                         // by stage
  std::map<std::pair<int64_t, int64_t>, Value> rates_;  // by steps and stage
  llvm::DenseMap<BlockArgument, Age> delays_;           // of gradients' weights
  llvm::DenseMap<BlockArgument, MovingAverage> averages_;
  // By the newest weights and the number of updates in between.
  llvm::DenseMap<std::pair<Value, int64_t>, Value> corrected_;
  std::optional<DelayedStates> states_;
};

}  // namespace
}  // namespace partita::pipeline
