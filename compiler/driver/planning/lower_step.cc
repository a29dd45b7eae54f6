// Launches of the lowered functions, with the sizes by which the simulator
// prices those of a program (compiler/simulator/cluster_costs.cc).
#include "compiler/driver/planning/lower_step.h"

#include <utility>

#include "compiler/core/mesh.h"
#include "compiler/core/traffic.h"
#include "compiler/driver/pipeline.h"
#include "compiler/emit/kernel_work.h"
#include "compiler/kernels/codegen.h"
#include "compiler/kernels/ptx.h"
#include "compiler/partition/partition.h"
#include "compiler/sharding/apply_plan.h"
#include "dialects/exec/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

namespace partita::driver {
namespace {

using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::FuncOp;
using planner::Precision;
using planner::StepLaunch;
using Kind = planner::StepLaunch::Kind;

// Of Adam, for each parameter.
constexpr int kStates = 2;

using Number = mlir::FusedLocWith<mlir::IntegerAttr>;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

double bytesOf(mlir::ValueRange values) {
  double bytes = 0;
  for (Value value : values)
    bytes += static_cast<double>(exec::bufferBytes(typeOf(value)));
  return bytes;
}

Precision precisionOf(Value value) {
  const mlir::Type element = typeOf(value).getElementType();
  if (element.isBF16()) return Precision::kBf16;
  return element.isF16() ? Precision::kF16 : Precision::kF32;
}

// Whether all that it gives are new values of parameters.
bool updates(Operation* op) {
  auto function = op->getParentOfType<FuncOp>();
  return llvm::all_of(op->getResults(), [&](Value result) {
    return !result.use_empty() &&
           llvm::all_of(result.getUses(), [&](mlir::OpOperand& use) {
             return use.getOwner()->hasTrait<mlir::OpTrait::IsTerminator>() &&
                    function.getResultAttr(use.getOperandNumber(),
                                           nn::kUpdatesAttr);
           });
  });
}

// After a broadcast, as after a gather, every device has all of the bytes.
core::CollectiveKind kindOf(core::CollectiveKind kind) {
  return kind == core::CollectiveKind::kBroadcast
             ? core::CollectiveKind::kAllGather
             : kind;
}

// What the busiest device sends to its neighbours.
int64_t exchangedBytes(exec::CollectiveOp op) {
  core::CollectiveWork work;
  work.kind = core::CollectiveKind::kExchange;
  work.group = op.getGroupSize();
  work.input_bytes = exec::bufferBytes(typeOf(op.getInput()));
  work.rows = typeOf(op.getInput()).getDimSize(op.getDim());
  work.output_rows = typeOf(op.getResult()).getDimSize(op.getDim());
  work.size = op.getSize();
  work.step = op.getStep();
  work.offset = op.getOffset();
  return core::BytesMoved(work);
}

// The launches of one function, in order.
class Lister {
 public:
  Lister(mlir::ModuleOp module, core::Mesh mesh, bool gpu)
      : module_(module), mesh_(std::move(mesh)), gpu_(gpu) {}

  std::vector<StepLaunch> run(FuncOp function) {
    launches_.clear();
    for (Operation& op : function.front().without_terminator()) {
      if (auto gemm = llvm::dyn_cast<exec::GemmOp>(op)) addProduct(gemm);
      if (auto conv = llvm::dyn_cast<exec::ConvOp>(op)) addConvolution(conv);
      if (auto launch = llvm::dyn_cast<exec::LaunchOp>(op)) addKernels(launch);
      if (auto collective = llvm::dyn_cast<exec::CollectiveOp>(op))
        addCollective(collective);
    }
    addCopies(function);
    return std::move(launches_);
  }

  // Those of a call, and of the calls in it.
  void append(mlir::func::CallOp call, bool backward,
              std::vector<StepLaunch>& step) {
    auto function = module_.lookupSymbol<FuncOp>(call.getCallee());
    for (StepLaunch& launch : run(function)) {
      if (launch.kind != Kind::kCollective) launch.beside = backward;
      step.push_back(std::move(launch));
    }
    for (auto inner : function.getOps<mlir::func::CallOp>())
      append(inner, backward, step);
  }

  // Whether of some kernel no code can be generated.
  bool failed() const { return failed_; }

 private:
  // What cuts a bucket up is of the parameter that gets a part of it.
  static int originOf(Operation* op) {
    Operation* user = op;
    do {
      if (user->getNumResults() != 1 || !user->getResult(0).hasOneUse())
        return numberOf(op);
      user = *user->user_begin();
    } while (llvm::isa<exec::ViewOp>(user));
    auto launch = llvm::dyn_cast<exec::LaunchOp>(user);
    return launch && updates(launch) ? numberOf(launch) : numberOf(op);
  }

  StepLaunch& add(Operation* op, Kind kind) {
    StepLaunch& launch = launches_.emplace_back();
    launch.kind = kind;
    launch.origin = originOf(op);
    if (op->getNumResults() > 0)
      launch.precision = precisionOf(op->getResult(0));
    return launch;
  }

  void addProduct(exec::GemmOp gemm) {
    StepLaunch& launch = add(gemm, Kind::kProduct);
    const llvm::ArrayRef<int64_t> sizes = gemm.getSizes(),
                                  lhs = gemm.getLhsStrides(),
                                  rhs = gemm.getRhsStrides();
    launch.batch = sizes[0], launch.m = sizes[1];
    launch.n = sizes[2], launch.k = sizes[3];
    // One matrix for all of a batch is one product.
    if (rhs[0] == 0 && lhs[0] == launch.m * lhs[1]) {
      launch.m *= launch.batch;
      launch.batch = 1;
    }
    if (rhs[2] != 1 && launch.n > 1)
      launch.form = planner::ProductForm::kRhsTransposed;
    else if (lhs[2] != 1 && launch.k > 1)
      launch.form = planner::ProductForm::kLhsTransposed;
  }

  void addConvolution(exec::ConvOp conv) {
    planner::Convolution& sizes = add(conv, Kind::kConvolution).convolution;
    Value weight = conv.getWeight(), out = conv.getResult();
    switch (conv.getDirection()) {
      case exec::ConvDirection::forward:
        break;
      case exec::ConvDirection::input_grad:
        sizes.direction = planner::ConvDirection::kInputGradient;
        out = conv.getInput();
        break;
      case exec::ConvDirection::weight_grad:
        sizes.direction = planner::ConvDirection::kWeightGradient;
        std::swap(weight, out);
        break;
    }
    sizes.groups = conv.getGroups();
    const llvm::ArrayRef<int64_t> shape = typeOf(weight).getShape();
    if (shape[0] == 0) return;
    sizes.channels = shape[0] / sizes.groups;
    for (int64_t size : shape.drop_front(2)) sizes.outside *= size;
    sizes.window = shape[1] * sizes.outside;
    sizes.places = typeOf(out).getNumElements() / shape[0];
    sizes.bytes = bytesOf(conv->getOperands()) + bytesOf(conv->getResults());
  }

  void addKernels(exec::LaunchOp launch) {
    auto kernel = module_.lookupSymbol<FuncOp>(launch.getKernel());
    const bool is_update = updates(launch);
    for (const emit::KernelWork& work : worksOf(kernel)) {
      StepLaunch& made = add(launch, Kind::kStream);
      made.bytes = bytesOf(launch->getOperands()) +
                   bytesOf(launch->getResults()) -
                   static_cast<double>(work.unread_bytes);
      made.updates = is_update;
      if (is_update) made.bytes += 2 * kStates * bytesOf(launch->getResults());
      if (work.operations == 0) continue;
      made.kind = Kind::kAttention;
      made.operations = static_cast<double>(work.operations);
      made.backward = launch->getNumResults() > 1;
    }
  }

  void addCollective(exec::CollectiveOp op) {
    StepLaunch& launch = add(op, Kind::kCollective);
    launch.collective = kindOf(op.getKind());
    launch.bytes = static_cast<double>(
        op.getKind() == exec::CollectiveKind::kExchange
            ? exchangedBytes(op)
            : std::max(exec::bufferBytes(typeOf(op.getInput())),
                       exec::bufferBytes(typeOf(op.getResult()))));
    launch.beside = isOfGradients(op);
    std::vector<core::AxisRef> axes;
    for (auto part = op.getAxes(); !part.empty(); part = part.drop_front(3))
      axes.push_back({static_cast<int>(part[0]), part[1], part[2]});
    for (const int64_t rank : core::GroupAlong(mesh_, axes, 0))
      launch.ranks.push_back(static_cast<int>(rank));
  }

  // Of what @main reduces, what nothing but updates reads, in parts or whole.
  // (Steps are listed without clipping, whose norm would be another reader.)
  bool isOfGradients(exec::CollectiveOp op) {
    if (!op->getParentOfType<FuncOp>().isPublic() ||
        (op.getKind() != exec::CollectiveKind::kAllReduce &&
         op.getKind() != exec::CollectiveKind::kReduceScatter))
      return false;
    llvm::SmallVector<Value> open = {op.getResult()};
    while (!open.empty()) {
      const Value value = open.pop_back_val();
      if (value.use_empty()) return false;
      for (Operation* user : value.getUsers()) {
        if (llvm::isa<exec::LaunchOp, mlir::func::CallOp>(user) &&
            updates(user))
          continue;
        if (!takesApart(user)) return false;
        llvm::append_range(open, user->getResults());
      }
    }
    return true;
  }

  // Whether what it gives has elements of what it takes, each for itself.
  bool takesApart(Operation* op) {
    if (llvm::isa<exec::ViewOp>(op)) return true;
    auto launch = llvm::dyn_cast<exec::LaunchOp>(op);
    if (!launch) return false;
    auto kernel = module_.lookupSymbol<FuncOp>(launch.getKernel());
    return llvm::all_of(
        kernel.front().without_terminator(), [](Operation& inner) {
          const kernels::KernelRole role = kernels::kernelRole(&inner);
          return role == kernels::KernelRole::movement ||
                 role == kernels::KernelRole::elementwise;
        });
  }

  // Results that no operation wrote where they belong.
  void addCopies(FuncOp function) {
    Operation* terminator = function.front().getTerminator();
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      while (auto view = value.getDefiningOp<exec::ViewOp>())
        value = view.getInput();
      Operation* maker = value.getDefiningOp();
      const auto offsets = maker
                               ? maker->getAttrOfType<mlir::DenseI64ArrayAttr>(
                                     exec::kOffsetsAttr)
                               : nullptr;
      if (offsets &&
          offsets[llvm::cast<mlir::OpResult>(value).getResultNumber()] ==
              -1 - static_cast<int64_t>(index))
        continue;
      add(terminator, Kind::kStream).bytes = 2 * bytesOf(value);
    }
  }

  // Of the kernel, or of each of those that it is on a GPU.
  const std::vector<emit::KernelWork>& worksOf(FuncOp kernel) {
    auto [known, is_new] = works_.try_emplace(kernel.getName());
    if (!is_new) return known->second;
    for (const kernels::PartWork& part : partsOf(kernel)) {
      exec::KernelPart words;
      words.products_of_keys = part.of_keys;
      words.products_of_values = part.of_values;
      words.untouched = part.untouched_bytes;
      known->second.push_back(emit::workOf(kernel, words));
    }
    if (known->second.empty()) known->second.push_back(emit::workOf(kernel));
    return known->second;
  }

  llvm::SmallVector<kernels::PartWork> partsOf(FuncOp kernel) {
    if (!gpu_) return {};
    auto parts = kernels::partWorkOf(kernel, kernels::ptxCodegenOptions());
    failed_ |= mlir::failed(parts);
    return mlir::succeeded(parts) ? *std::move(parts)
                                  : llvm::SmallVector<kernels::PartWork>();
  }

  mlir::ModuleOp module_;
  const core::Mesh mesh_;
  const bool gpu_;
  bool failed_ = false;
  llvm::StringMap<std::vector<emit::KernelWork>> works_;
  std::vector<StepLaunch> launches_;
};

// Errors of what nobody asked for.
mlir::LogicalResult swallow(mlir::Diagnostic& diagnostic) {
  return mlir::success(diagnostic.getSeverity() !=
                       mlir::DiagnosticSeverity::Error);
}

// Null where the plan does not divide it.
mlir::OwningOpRef<mlir::ModuleOp> divided(mlir::ModuleOp module,
                                          const plan::Plan& plan, bool gpu) {
  mlir::OwningOpRef<mlir::ModuleOp> copy(module.clone());
  mlir::PassManager passes(module.getContext());
  // Of what is chosen, compiling verifies each step.
  passes.enableVerifier(false);
  lowerToLaunches(passes, gpu);
  if (mlir::failed(sharding::applyPlan(*copy, plan)) ||
      mlir::failed(partition::partitionModule(*copy)) ||
      mlir::failed(passes.run(*copy)) || mlir::failed(mlir::verify(*copy)))
    return nullptr;
  return copy;
}

}  // namespace

void numberOperations(mlir::ModuleOp module) {
  mlir::Builder builder(module.getContext());
  for (FuncOp function : module.getOps<FuncOp>())
    for (auto [number, op] :
         llvm::enumerate(function.front().without_terminator()))
      op.setLoc(mlir::FusedLoc::get(
          module.getContext(), {op.getLoc()},
          builder.getI64IntegerAttr(static_cast<int64_t>(number))));
}

int numberOf(Operation* op) {
  const auto found = op->getLoc()->findInstanceOf<Number>();
  return found ? static_cast<int>(found.getMetadata().getInt()) : -1;
}

std::optional<planner::StepLaunches> lowerStep(
    mlir::ModuleOp module, const std::vector<std::string>& functions,
    const plan::Plan& plan, bool gpu) {
  mlir::ScopedDiagnosticHandler quiet(module.getContext(), swallow);
  mlir::OwningOpRef<mlir::ModuleOp> copy = divided(module, plan, gpu);
  if (!copy) return std::nullopt;
  Lister lister(*copy, plan.mesh, gpu);
  planner::StepLaunches launches;
  for (const std::string& name : functions) {
    // What is one launch is where it was called.
    auto function = copy->lookupSymbol<FuncOp>(name);
    launches.push_back(function ? lister.run(function)
                                : std::vector<StepLaunch>());
  }
  if (lister.failed()) return std::nullopt;
  return launches;
}

std::optional<std::vector<StepLaunch>> lowerStep(mlir::ModuleOp module,
                                                 const plan::Plan& plan,
                                                 bool gpu) {
  mlir::ScopedDiagnosticHandler quiet(module.getContext(), swallow);
  mlir::OwningOpRef<mlir::ModuleOp> copy = divided(module, plan, gpu);
  if (!copy) return std::nullopt;
  Lister lister(*copy, plan.mesh, gpu);
  auto main = copy->lookupSymbol<FuncOp>("main");
  Operation* loss = main.front().getTerminator()->getOperand(0).getDefiningOp();
  std::vector<StepLaunch> step = lister.run(main);
  for (auto call : main.getOps<mlir::func::CallOp>())
    lister.append(call, loss && loss->isBeforeInBlock(call), step);
  if (lister.failed()) return std::nullopt;
  return step;
}

}  // namespace partita::driver
