// Generates code for processors: entries with the C interface, object files,
// and shared objects, which lld links in process.
#include "compiler/kernels/object.h"

#include <cstdlib>
#include <mutex>

#include "compiler/kernels/lower_to_llvm.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

LLD_HAS_DRIVER(elf)

namespace partita::kernels {
namespace {

using namespace mlir;

// Renames `kernel`, and gives its name to a function with the C interface that
// loads the buffers' addresses.
void wrapKernel(LLVM::LLVMFuncOp kernel) {
  MLIRContext* context = kernel.getContext();
  OpBuilder builder(kernel);
  Location loc = kernel.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(context);
  Type i64 = builder.getI64Type();
  std::string name = kernel.getName().str();
  auto bytes = cast<DenseI64ArrayAttr>(kernel->getAttr(kBuffersAttr));
  kernel->removeAttr(kBuffersAttr);
  kernel.setName(name + ".body");
  kernel.setLinkage(LLVM::Linkage::Internal);
  // The C interface guarantees this; with it, loads move out of loops.
  for (auto [i, size] : llvm::enumerate(bytes.asArrayRef())) {
    kernel.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                      builder.getUnitAttr());
    kernel.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                      builder.getI64IntegerAttr(64));
    if (size > 0)
      kernel.setArgAttr(i, LLVM::LLVMDialect::getDereferenceableAttrName(),
                        builder.getI64IntegerAttr(size));
  }
  unsigned scratch = kernel.getNumArguments() - 1;
  kernel.setArgAttr(scratch, LLVM::LLVMDialect::getNoAliasAttrName(),
                    builder.getUnitAttr());
  kernel.setArgAttr(scratch, LLVM::LLVMDialect::getAlignAttrName(),
                    builder.getI64IntegerAttr(64));

  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                          {pointer, i64, i64, pointer});
  auto entry = LLVM::LLVMFuncOp::create(builder, loc, name, type);
  Block* block = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  SmallVector<Value> arguments;
  for (size_t i = 0; i < bytes.size(); ++i) {
    Value at = LLVM::GEPOp::create(
        builder, loc, pointer, pointer, block->getArgument(0),
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    arguments.push_back(LLVM::LoadOp::create(builder, loc, pointer, at));
  }
  for (unsigned i = 1; i < 4; ++i) arguments.push_back(block->getArgument(i));
  LLVM::CallOp::create(builder, loc, kernel, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
}

FailureOr<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(
    ModuleOp module, const ObjectOptions& options) {
  static std::once_flag initialised;
  std::call_once(initialised, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  std::string error;
  const llvm::Target* target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return module.emitError() << "expected LLVM to support the target "
                              << triple.str() << ": " << error;
  std::string cpu = options.cpu, features = options.features;
  if (cpu == "host") {
    cpu = llvm::sys::getHostCPUName().str();
    if (features.empty())
      for (const auto& feature : llvm::sys::getHostCPUFeatures())
        features += (features.empty() ? "" : ",") +
                    std::string(feature.second ? "+" : "-") +
                    feature.first().str();
  }
  llvm::TargetOptions target_options;
  target_options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  llvm::CodeGenOptLevel level = options.opt_level >= 2
                                    ? llvm::CodeGenOptLevel::Default
                                    : llvm::CodeGenOptLevel::Less;
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, cpu, features, target_options,
                                  llvm::Reloc::PIC_, std::nullopt, level));
  if (!machine)
    return module.emitError()
           << "expected a CPU that LLVM knows, found '" << options.cpu << "'";
  return machine;
}

Bf16 bf16Of(const llvm::TargetMachine& machine) {
  const llvm::Triple& triple = machine.getTargetTriple();
  const char* feature = triple.isX86()       ? "+avx512bf16"
                        : triple.isAArch64() ? "+bf16"
                                             : nullptr;
  return feature != nullptr &&
                 machine.getMCSubtargetInfo()->checkFeatures(feature)
             ? Bf16::kFloat
             : Bf16::kInteger;
}

}  // namespace

FailureOr<std::string> compileToObject(
    ModuleOp target, const ObjectOptions& options,
    llvm::function_ref<void(llvm::Module&)> change) {
  FailureOr<std::unique_ptr<llvm::TargetMachine>> machine =
      makeTargetMachine(target, options);
  if (failed(machine) ||
      failed(lowerToLlvm(target, MathLibrary::kLibm, bf16Of(**machine))))
    return failure();
  SmallVector<LLVM::LLVMFuncOp> kernels;
  for (auto function : target.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr(kBuffersAttr)) kernels.push_back(function);
  for (LLVM::LLVMFuncOp kernel : kernels) wrapKernel(kernel);

  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(target, context, "kernels");
  if (!module)
    return target.emitError(
        "expected generated kernels to translate to LLVM IR");
  module->setTargetTriple((*machine)->getTargetTriple());
  module->setDataLayout((*machine)->createDataLayout());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  if (change) change(*module);
  for (llvm::Function& function : *module) {
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr("target-cpu", (*machine)->getTargetCPU());
    function.addFnAttr("target-features", (*machine)->getTargetFeatureString());
  }
  optimizeModule(*module, **machine, options.opt_level);

  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emission;
  if ((*machine)->addPassesToEmitFile(emission, stream, nullptr,
                                      llvm::CodeGenFileType::ObjectFile))
    return target.emitError(
        "expected LLVM to write object files for this target");
  emission.run(*module);
  return std::string(object.data(), object.size());
}

FailureOr<std::string> linkSharedObject(Location loc, StringRef object) {
  auto fail = [&](const llvm::Twine& what) {
    return mlir::emitError(loc) << "could not link kernels: " << what;
  };
  llvm::SmallString<128> folder;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("partita-kernels", folder))
    return fail("expected to make a temporary folder: " + error.message());
  auto clean =
      llvm::scope_exit([&] { llvm::sys::fs::remove_directories(folder); });
  std::string input = (folder + "/kernels.o").str(),
              output = (folder + "/kernels.so").str();
  {
    std::error_code error;
    llvm::raw_fd_ostream file(input, error);
    file << object;
    file.close();
    if (file.has_error()) {
      error = file.error();
      file.clear_error();  // otherwise the stream's destructor ends the process
    }
    if (error)
      return fail("expected to write " + input + ", found: " + error.message() +
                  "; is the disk full? TMPDIR may name another folder");
  }
  std::string message;
  llvm::raw_string_ostream errors(message);
  std::vector<const char*> arguments = {
      "ld.lld", "-shared",      "--threads=1", "--hash-style=gnu",
      "-o",     output.c_str(), input.c_str()};
  static std::mutex one_at_a_time;  // lld keeps global state
  std::lock_guard<std::mutex> lock(one_at_a_time);
  lld::Result result = lld::lldMain(arguments, llvm::nulls(), errors,
                                    {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) return fail(message);
  auto bytes = llvm::MemoryBuffer::getFile(output, /*IsText=*/false,
                                           /*RequiresNullTerminator=*/false);
  if (!bytes) return fail("expected to read " + output);
  return (*bytes)->getBuffer().str();
}

void registerObjectTranslations(DialectRegistry& registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registry.insert<LLVM::LLVMDialect>();
}

}  // namespace partita::kernels
