// Puts the code of all kernels into one module, and their launch parameters
// onto the launches.
#include "compiler/kernels/generate_code.h"

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/flat_kernels.h"
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

// Kernels of functions that update stored tensors. Launches of shared code may
// become one there (compiler/memory); everywhere else, code for a kernel's own
// sizes is faster.
SmallVector<func::FuncOp> kernelsOfUpdates(ModuleOp module) {
  llvm::StringSet<> names;
  for (auto function : module.getOps<func::FuncOp>()) {
    const auto updates = [&](unsigned result) {
      return function.getResultAttr(result, nn::kUpdatesAttr) != nullptr;
    };
    if (llvm::any_of(llvm::seq(function.getNumResults()), updates))
      function.walk(
          [&](exec::LaunchOp launch) { names.insert(launch.getKernel()); });
  }
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

// Marks a kernel with its parts, which all have the launch's operands. They
// stay one launch until memory is planned, so that results have one place and
// no other launch comes between them.
void markParts(func::FuncOp function, const KernelCode& kernel,
               const llvm::StringMap<PtxKernel>& launches) {
  if (!kernel.work) return;
  SmallVector<exec::KernelPart> parts;
  const auto add = [&](const KernelCode& part) {
    const PtxKernel launch = launches.lookup(part.symbol);
    parts.push_back({part.symbol, launch.blocks, launch.scratch_bytes,
                     launch.shared_bytes, part.work->of_keys,
                     part.work->of_values, part.work->untouched_bytes});
  };
  llvm::for_each(kernel.before, add);
  add(kernel);
  exec::setKernelParts(function, parts);
}

ArrayAttr mapsOf(MLIRContext* context, const PtxKernel& kernel) {
  SmallVector<Attribute> maps;
  for (const TensorMap& map : kernel.maps)
    maps.push_back(exec::TensorMapAttr::get(context, map.argument, map.offset,
                                            map.shape, map.strides, map.box));
  return ArrayAttr::get(context, maps);
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

FailureOr<SmallVector<KernelCode>> addGpuCode(ModuleOp module, ModuleOp code,
                                              const PtxOptions& options) {
  SmallVector<KernelCode> kernels;
  llvm::StringMap<PtxKernel> by_name;
  for (func::FuncOp kernel : kernelsOf(module)) {
    FailureOr<KernelCode> generated =
        generateKernel(kernel, code, ptxCodegenOptions(options));
    if (failed(generated)) return failure();
    for (const KernelCode& part : generated->before)
      by_name[part.symbol] = ptxKernelOf(part, options);
    by_name[generated->symbol] = ptxKernelOf(*generated, options);
    kernels.push_back(std::move(*generated));
  }
  for (const KernelCode& kernel : kernels)
    markParts(module.lookupSymbol<func::FuncOp>(kernel.symbol), kernel,
              by_name);
  module.walk([&](exec::LaunchOp launch) {
    const PtxKernel& kernel = by_name[launch.getKernel()];
    launch.setBlocks(kernel.blocks);
    launch.setThreads(kBlock);
    launch.setScratch(kernel.scratch_bytes);
    if (kernel.shared_bytes > 0) launch.setShared(kernel.shared_bytes);
    if (!kernel.maps.empty())
      launch.setMapsAttr(mapsOf(module.getContext(), kernel));
  });
  return kernels;
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
