// Puts the code of all kernels into one module, and their launch parameters
// onto the launches.
#include "compiler/kernels/generate_code.h"

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/flat_kernels.h"
#include "compiler/kernels/part_maps.h"
#include "dialects/exec/dialect.h"
#include "dialects/exec/kernel_parts.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::kernels {
namespace {

using namespace mlir;

// Attribute of a kernel function with code: KernelCode::cycles.
constexpr char kCyclesAttr[] = "kernel.cycles";

OwningOpRef<ModuleOp> makeCodeModule(ModuleOp module) {
  return ModuleOp::create(module.getLoc(), "kernels");
}

SmallVector<func::FuncOp> kernelsOf(ModuleOp module) {
  SmallVector<func::FuncOp> kernels;
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr(exec::kKernelAttr)) kernels.push_back(kernel);
  return kernels;
}

bool updatesStored(func::FuncOp function) {
  return llvm::any_of(
      llvm::seq(function.getNumResults()), [&](unsigned result) {
        return function.getResultAttr(result, nn::kUpdatesAttr) != nullptr;
      });
}

// Kernels of functions that update stored tensors. Launches of shared code may
// become one there (compiler/memory); everywhere else, code for a kernel's own
// sizes is faster.
SmallVector<func::FuncOp> kernelsOfUpdates(ModuleOp module) {
  llvm::StringSet<> names;
  for (auto function : module.getOps<func::FuncOp>())
    if (updatesStored(function))
      function.walk(
          [&](exec::LaunchOp launch) { names.insert(launch.getKernel()); });
  SmallVector<func::FuncOp> kernels = kernelsOf(module);
  llvm::erase_if(kernels, [&](func::FuncOp kernel) {
    return !names.contains(kernel.getName());
  });
  return kernels;
}

// Appends the code of kernels to a module, and marks the kernels with its name.
class HostCode {
 public:
  explicit HostCode(ModuleOp code) : code_(code) {}

  LogicalResult addGroup(const FlatGroup& group) {
    func::FuncOp first = group.kernels.front();
    func::FuncOp form = flatForm(first, group.chunk);
    form.setName(first.getName());
    FailureOr<KernelCode> generated = generateKernel(form, code_);
    form.erase();
    if (failed(generated)) return failure();
    for (auto [kernel, elements] :
         llvm::zip_equal(group.kernels, group.elements)) {
      KernelCode code = *generated;
      code.range = elements / group.chunk;
      code.grain = std::min(code.grain, code.range);
      set(kernel, code);
    }
    return success();
  }

  LogicalResult add(func::FuncOp kernel) {
    if (kernels_.contains(kernel.getName())) return success();
    FailureOr<KernelCode> generated = generateKernel(kernel, code_);
    if (failed(generated)) return failure();
    set(kernel, *generated);
    return success();
  }

  const KernelCode& of(exec::LaunchOp launch) {
    return kernels_[launch.getKernel()];
  }

 private:
  void set(func::FuncOp kernel, const KernelCode& code) {
    kernel->setAttr(exec::kKernelAttr,
                    StringAttr::get(kernel.getContext(), code.symbol));
    kernel->setAttr(kCyclesAttr,
                    Builder(kernel.getContext()).getF64FloatAttr(code.cycles));
    kernels_[kernel.getName()] = code;
  }

  ModuleOp code_;
  llvm::StringMap<KernelCode> kernels_;
};

ArrayAttr mapsOf(MLIRContext* context, const PtxKernel& kernel) {
  SmallVector<Attribute> maps;
  for (const TensorMap& map : kernel.maps)
    maps.push_back(exec::TensorMapAttr::get(context, map.argument, map.offset,
                                            map.shape, map.strides, map.box));
  return ArrayAttr::get(context, maps);
}

// Marks a kernel with its parts, which all have the launch's operands. They
// stay one launch until memory is planned, so that results have one place and
// no other launch comes between them.
void markParts(func::FuncOp function, const KernelCode& kernel,
               const llvm::StringMap<PtxKernel>& launches) {
  if (!kernel.work) return;
  SmallVector<exec::KernelPart> parts;
  SmallVector<Attribute> maps;
  bool has_maps = false;
  const auto add = [&](const KernelCode& part) {
    const PtxKernel launch = launches.lookup(part.symbol);
    parts.push_back({part.symbol, launch.blocks, launch.scratch_bytes,
                     launch.shared_bytes, part.work->of_keys,
                     part.work->of_values, part.work->untouched_bytes});
    maps.push_back(mapsOf(function.getContext(), launch));
    has_maps |= !launch.maps.empty();
  };
  llvm::for_each(kernel.before, add);
  add(kernel);
  exec::setKernelParts(function, parts);
  if (has_maps)
    function->setAttr(kPartMapsAttr,
                      ArrayAttr::get(function.getContext(), maps));
}

// Appends the code of all kernels to `code`; returns false if there are none.
FailureOr<bool> addHostCode(ModuleOp module, ModuleOp code) {
  const SmallVector<func::FuncOp> kernels = kernelsOf(module);
  if (kernels.empty()) return false;
  HostCode host(code);
  for (const FlatGroup& group : findFlatGroups(kernelsOfUpdates(module)))
    if (failed(host.addGroup(group))) return failure();
  for (func::FuncOp kernel : kernels)
    if (failed(host.add(kernel))) return failure();
  module.walk([&](exec::LaunchOp launch) {
    const KernelCode& kernel = host.of(launch);
    launch.setRange(kernel.range);
    launch.setGrain(kernel.grain);
    launch.setScratch(kernel.scratch_bytes);
  });
  return true;
}

// Groups of kernels that have at least two launches, all of them in functions
// that update stored tensors.
std::vector<FlatGroup> groupsOfUpdates(ModuleOp module) {
  llvm::StringMap<int> launches, updates;
  module.walk([&](exec::LaunchOp launch) {
    ++launches[launch.getKernel()];
    if (updatesStored(launch->getParentOfType<func::FuncOp>()))
      ++updates[launch.getKernel()];
  });
  SmallVector<func::FuncOp> kernels = kernelsOf(module);
  llvm::erase_if(kernels, [&](func::FuncOp kernel) {
    const StringRef name = kernel.getName();
    return updates.lookup(name) == 0 ||
           updates.lookup(name) != launches.lookup(name) ||
           kernel.getNumArguments() + kernel.getNumResults() >
               exec::kMostPieceOperands;
  });
  std::vector<FlatGroup> groups = findFlatGroupsForGpus(kernels);
  llvm::erase_if(groups, [&](const FlatGroup& group) {
    int all = 0;
    for (func::FuncOp kernel : group.kernels)
      all += launches.lookup(kernel.getName());
    return all < 2;
  });
  return groups;
}

// Appends the code of kernels for GPUs to a module.
class GpuCode {
 public:
  GpuCode(ModuleOp code, const PtxOptions& options)
      : code_(code), options_(options) {}

  // Makes code that takes pieces. Does nothing if it needs scratch, for which a
  // table has no place.
  LogicalResult addGroup(const FlatGroup& group) {
    func::FuncOp first = group.kernels.front();
    func::FuncOp form = flatForm(first, group.chunk);
    form.setName(first.getName());
    FailureOr<KernelCode> generated =
        generateKernel(form, code_, ptxCodegenOptions(options_));
    form.erase();
    if (failed(generated)) return failure();
    if (generated->scratch_bytes > 0) {
      code_.lookupSymbol(generated->symbol)->erase();
      return success();
    }
    generated->takes_pieces = true;
    kernels_.push_back(*generated);
    for (auto [kernel, elements] :
         llvm::zip_equal(group.kernels, group.elements)) {
      generated->range = elements / group.chunk;
      const StringRef name = func::FuncOp(kernel).getName();
      kernel->setAttr(exec::kKernelAttr,
                      StringAttr::get(code_.getContext(), generated->symbol));
      launches_[name] = ptxKernelOf(*generated, options_);
      ranges_[name] = generated->range;
    }
    return success();
  }

  LogicalResult add(func::FuncOp kernel) {
    if (ranges_.contains(kernel.getName())) return success();
    FailureOr<KernelCode> generated =
        generateKernel(kernel, code_, ptxCodegenOptions(options_));
    if (failed(generated)) return failure();
    for (const KernelCode& part : generated->before)
      launches_[part.symbol] = ptxKernelOf(part, options_);
    launches_[generated->symbol] = ptxKernelOf(*generated, options_);
    markParts(kernel, *generated, launches_);
    kernels_.push_back(std::move(*generated));
    return success();
  }

  PtxKernel launchOf(StringRef kernel) const {
    return launches_.lookup(kernel);
  }
  // The range of a kernel whose code takes pieces.
  std::optional<int64_t> rangeOf(StringRef kernel) const {
    auto found = ranges_.find(kernel);
    if (found == ranges_.end()) return std::nullopt;
    return found->second;
  }
  SmallVector<KernelCode> takeKernels() { return std::move(kernels_); }

 private:
  ModuleOp code_;
  const PtxOptions& options_;
  SmallVector<KernelCode> kernels_;
  llvm::StringMap<PtxKernel> launches_;
  llvm::StringMap<int64_t> ranges_;
};

FailureOr<SmallVector<KernelCode>> addGpuCode(ModuleOp module, ModuleOp code,
                                              const PtxOptions& options) {
  GpuCode gpu(code, options);
  for (const FlatGroup& group : groupsOfUpdates(module))
    if (failed(gpu.addGroup(group))) return failure();
  for (func::FuncOp kernel : kernelsOf(module))
    if (failed(gpu.add(kernel))) return failure();
  module.walk([&](exec::LaunchOp launch) {
    const PtxKernel kernel = gpu.launchOf(launch.getKernel());
    if (auto range = gpu.rangeOf(launch.getKernel())) launch.setRange(range);
    launch.setBlocks(kernel.blocks);
    launch.setThreads(kBlock);
    launch.setScratch(kernel.scratch_bytes);
    if (kernel.shared_bytes > 0) launch.setShared(kernel.shared_bytes);
    if (!kernel.maps.empty())
      launch.setMapsAttr(mapsOf(module.getContext(), kernel));
  });
  return gpu.takeKernels();
}

}  // namespace

FailureOr<std::string> generateObject(ModuleOp module,
                                      const ObjectOptions& options) {
  OwningOpRef<ModuleOp> code = makeCodeModule(module);
  FailureOr<bool> any = addHostCode(module, *code);
  if (failed(any)) return failure();
  if (!*any) return std::string();
  return compileToObject(*code, options);
}

FailureOr<std::string> generatePtx(ModuleOp module, const PtxOptions& options) {
  OwningOpRef<ModuleOp> code = makeCodeModule(module);
  auto kernels = addGpuCode(module, *code, options);
  if (failed(kernels)) return failure();
  if (kernels->empty()) return std::string();
  return compileToPtx(*code, *kernels, options);
}

LogicalResult describeObject(ModuleOp module) {
  OwningOpRef<ModuleOp> code = makeCodeModule(module);
  return success(succeeded(addHostCode(module, *code)));
}

LogicalResult describePtx(ModuleOp module, const PtxOptions& options) {
  OwningOpRef<ModuleOp> code = makeCodeModule(module);
  return success(succeeded(addGpuCode(module, *code, options)));
}

llvm::StringMap<double> cyclesOfCode(ModuleOp module) {
  llvm::StringMap<double> cycles;
  for (func::FuncOp kernel : kernelsOf(module))
    if (auto own = kernel->getAttrOfType<FloatAttr>(kCyclesAttr))
      cycles[kernel->getAttrOfType<StringAttr>(exec::kKernelAttr)] =
          own.getValueAsDouble();
  return cycles;
}

}  // namespace partita::kernels
