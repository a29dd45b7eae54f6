// Chooses what a GPU needs of generated code, and writes PTX.
#include "compiler/kernels/ptx.h"

#include <mutex>

#include "compiler/kernels/chips.h"
#include "compiler/kernels/lower_to_llvm.h"
#include "compiler/kernels/ptx_target.h"
#include "compiler/kernels/wrap_kernels.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "mlir/Target/LLVMIR/Export.h"

extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace partita::kernels {
namespace {

mlir::FailureOr<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(
    mlir::ModuleOp module, const PtxOptions& options) {
  static std::once_flag initialised;
  std::call_once(initialised, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target* target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return module.emitError()
           << "expected an LLVM that generates code for GPUs: " << error;
  llvm::TargetOptions target_options;
  target_options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, options.chip, kPtxFeatures, target_options, llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Default));
  if (!machine)
    return module.emitError()
           << "expected a GPU that LLVM knows, found '" << options.chip << "'";
  return machine;
}

}  // namespace

CodegenOptions ptxCodegenOptions(const PtxOptions& target) {
  CodegenOptions options;
  options.vector_bytes = 16;  // size of the widest access
  options.team = kWarp;
  options.tensor_cores = true;
  const Chip* chip = findChip(target.chip);
  options.warpgroups = chip && chip->warpgroups;
  options.shared_bytes = chip ? chip->shared_bytes : kSharedBytes;
  return options;
}

PtxKernel ptxKernelOf(const KernelCode& code, const PtxOptions& options) {
  const BlockLayout layout =
      layOut(code, ptxCodegenOptions(options).shared_bytes);
  return {
      code.symbol, layout.blocks,
      code.memory_bytes > 0 ? code.memory_bytes : scratchInMemory(code, layout),
      layout.dynamic_shared ? code.scratch_bytes * layout.teams : 0, code.maps};
}

mlir::FailureOr<std::string> compileToPtx(mlir::ModuleOp target,
                                          llvm::ArrayRef<KernelCode> kernels,
                                          const PtxOptions& options) {
  target.walk([](mlir::Operation* op) { op->removeAttr(kBuffersAttr); });
  if (mlir::failed(lowerToLlvm(target, MathLibrary::kNone)))
    return mlir::failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      mlir::translateModuleToLLVMIR(target, context, "kernels");
  if (!module)
    return target.emitError(
        "expected generated kernels to translate to LLVM IR");
  mlir::FailureOr<std::unique_ptr<llvm::TargetMachine>> machine =
      makeTargetMachine(target, options);
  if (mlir::failed(machine)) return mlir::failure();
  module->setTargetTriple((*machine)->getTargetTriple());
  module->setDataLayout((*machine)->createDataLayout());

  defineTargetFunctions(*module);
  const int64_t most_shared = ptxCodegenOptions(options).shared_bytes;
  const auto wrap = [&](const KernelCode& code) {
    wrapKernel(*module, code, layOut(code, most_shared));
  };
  for (const KernelCode& code : kernels) {
    llvm::for_each(code.before, wrap);
    wrap(code);
  }
  if (llvm::verifyModule(*module, &llvm::errs()))
    return target.emitError("expected kernels that LLVM finds well formed");
  optimizeModule(*module, **machine, options.opt_level);

  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager emission;
  if ((*machine)->addPassesToEmitFile(emission, stream, nullptr,
                                      llvm::CodeGenFileType::AssemblyFile))
    return target.emitError("expected LLVM to write PTX");
  emission.run(*module);
  return std::string(text.data(), text.size());
}

}  // namespace partita::kernels
