// Wraps generated functions into GPU kernels, whose warps take the items of the
// range in turn, and writes PTX.
#include "compiler/kernels/ptx.h"

#include <algorithm>
#include <mutex>

#include "compiler/kernels/chips.h"
#include "compiler/kernels/lower_to_llvm.h"
#include "compiler/kernels/ptx_target.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
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

// Several times the number of blocks that a large GPU holds at once: more
// blocks would only start later.
constexpr int64_t kMostBlocks = 132 * 16 * 4;
// For kernels with scratch per thread in device memory: a block's scratch is
// reserved even while the block does not run.
constexpr int64_t kMostBlocksWithScratch = 132 * 4;
// Shared memory of a block without a request for more.
constexpr int64_t kSharedBytes = 48 * 1024;
// Alignment of shared memory: the swizzle of tiles read by warpgroups repeats
// after this many bytes.
constexpr int64_t kSharedAlignment = 1024;

const llvm::ArrayRef<llvm::Type*> kNoTypes;
const llvm::ArrayRef<llvm::Value*> kNoValues;

// The teams of a kernel, and the place of their scratch.
struct Layout {
  int64_t team;                 // threads that compute an item
  int64_t teams;                // working teams per block
  bool shared = false;          // scratch lies in shared memory
  bool dynamic_shared = false;  // the launch must request shared memory
  int64_t blocks;
};

// `most_shared` is the shared memory that a block may request. Only kernels of
// warpgroups need more than kSharedBytes.
Layout layOut(const KernelCode& code, int64_t most_shared) {
  Layout layout;
  layout.team = code.team;
  layout.teams = kBlock / code.team;
  layout.shared = code.scratch_bytes > 0 &&
                  code.scratch_bytes * layout.teams <=
                      (layout.teams == 1 ? most_shared : kSharedBytes) &&
                  code.team > 1;
  layout.dynamic_shared =
      layout.shared && code.scratch_bytes * layout.teams > kSharedBytes;
  int64_t most = code.scratch_bytes > 0 && !layout.shared
                     ? kMostBlocksWithScratch
                     : kMostBlocks;
  layout.blocks = std::clamp<int64_t>(
      (code.range + layout.teams - 1) / layout.teams, 1, most);
  return layout;
}

// Device memory for the scratch of all teams, in bytes.
int64_t scratchInMemory(const KernelCode& code, const Layout& layout) {
  return layout.shared ? 0 : code.scratch_bytes * layout.teams * layout.blocks;
}

class KernelBuilder {
 public:
  KernelBuilder(llvm::Module& module)
      : module_(module), context_(module.getContext()), builder_(context_) {}

  // Makes the kernel; `code`'s function becomes its inner part.
  void wrap(const KernelCode& code, const Layout& layout) {
    llvm::Function* body = module_.getFunction(code.symbol);
    body->setName(code.symbol + ".body");
    body->setLinkage(llvm::GlobalValue::InternalLinkage);
    body->removeFnAttr(llvm::Attribute::NoInline);
    body->addFnAttr(llvm::Attribute::AlwaysInline);
    unsigned buffers = body->arg_size() - 3;
    std::vector<llvm::Type*> types(
        buffers + (scratchInMemory(code, layout) > 0), builder_.getPtrTy());
    auto* kernel = llvm::Function::Create(
        llvm::FunctionType::get(builder_.getVoidTy(), types, false),
        llvm::GlobalValue::ExternalLinkage, code.symbol, module_);
    kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
    kernel->addFnAttr("nvvm.maxntid", std::to_string(kBlock));
    for (llvm::Argument& argument : kernel->args()) {
      argument.addAttr(llvm::Attribute::NoAlias);
      argument.addAttr(
          llvm::Attribute::getWithAlignment(context_, llvm::Align(64)));
    }
    // Maps are passed by value: the accelerator reads them in the parameters.
    auto* map = llvm::ArrayType::get(builder_.getInt8Ty(), kTensorMapBytes);
    for (unsigned i = buffers - code.maps.size(); i < buffers; ++i) {
      llvm::Argument* argument = kernel->getArg(i);
      argument->addAttr(llvm::Attribute::getWithByValType(context_, map));
      argument->addAttr(llvm::Attribute::get(context_, "nvvm.grid_constant"));
    }
    emitLoop(code, layout, kernel, body, buffers);
  }

 private:
  llvm::Value* threadOfBlock() {
    return builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x,
                                    kNoTypes, kNoValues);
  }

  // Scratch of the team with this number in its block, and in the grid.
  llvm::Value* scratchOf(const KernelCode& code, const Layout& layout,
                         llvm::Function* kernel, llvm::Value* in_block,
                         llvm::Value* in_grid) {
    llvm::Value* bytes = builder_.getInt64(code.scratch_bytes);
    llvm::Value *base = nullptr, *number = in_grid;
    if (layout.shared) {
      // Requested shared memory has no size in the code.
      auto* type = llvm::ArrayType::get(
          builder_.getInt8Ty(),
          layout.dynamic_shared ? 0 : code.scratch_bytes * layout.teams);
      auto* shared = new llvm::GlobalVariable(
          module_, type, /*isConstant=*/false,
          layout.dynamic_shared ? llvm::GlobalValue::ExternalLinkage
                                : llvm::GlobalValue::InternalLinkage,
          layout.dynamic_shared ? nullptr : llvm::UndefValue::get(type),
          code.symbol + "_shared", nullptr, llvm::GlobalValue::NotThreadLocal,
          /*AddressSpace=*/3);
      shared->setAlignment(llvm::Align(kSharedAlignment));
      base = builder_.CreateAddrSpaceCast(shared, builder_.getPtrTy());
      number = in_block;
    } else {
      base = kernel->getArg(kernel->arg_size() - 1);
    }
    return builder_.CreateGEP(builder_.getInt8Ty(), base,
                              builder_.CreateMul(number, bytes));
  }

  // for (item = this team's number; item < range; item += teams of the grid)
  void emitLoop(const KernelCode& code, const Layout& layout,
                llvm::Function* kernel, llvm::Function* body,
                unsigned buffers) {
    llvm::Type* i64 = builder_.getInt64Ty();
    auto block = [&](const char* name) {
      return llvm::BasicBlock::Create(context_, name, kernel);
    };
    llvm::BasicBlock *entry = block("entry"), *loop = block("loop"),
                     *done = block("done");
    builder_.SetInsertPoint(entry);
    llvm::Value* in_block =
        builder_.CreateUDiv(builder_.CreateZExt(threadOfBlock(), i64),
                            builder_.getInt64(layout.team));
    llvm::Value* number_of_block = builder_.CreateZExt(
        builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x,
                                 kNoTypes, kNoValues),
        i64);
    llvm::Value* first = builder_.CreateAdd(
        builder_.CreateMul(number_of_block, builder_.getInt64(layout.teams)),
        in_block);
    llvm::Value* scratch =
        code.scratch_bytes == 0
            ? llvm::ConstantPointerNull::get(builder_.getPtrTy())
            : scratchOf(code, layout, kernel, in_block, first);
    llvm::Value* range = builder_.getInt64(code.range);
    builder_.CreateCondBr(builder_.CreateICmpULT(first, range), loop, done);

    builder_.SetInsertPoint(loop);
    llvm::PHINode* item = builder_.CreatePHI(i64, 2);
    item->addIncoming(first, entry);
    std::vector<llvm::Value*> arguments;
    for (unsigned i = 0; i < buffers; ++i)
      arguments.push_back(kernel->getArg(i));
    arguments.push_back(item);
    arguments.push_back(builder_.CreateAdd(item, builder_.getInt64(1)));
    arguments.push_back(scratch);
    builder_.CreateCall(body, arguments);
    llvm::Value* next = builder_.CreateAdd(
        item, builder_.getInt64(layout.blocks * layout.teams));
    item->addIncoming(next, loop);
    builder_.CreateCondBr(builder_.CreateICmpULT(next, range), loop, done);

    builder_.SetInsertPoint(done);
    builder_.CreateRetVoid();
  }

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> builder_;
};

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
  const Layout layout = layOut(code, ptxCodegenOptions(options).shared_bytes);
  return {
      code.symbol, layout.blocks,
      code.memory_bytes > 0 ? code.memory_bytes : scratchInMemory(code, layout),
      layout.dynamic_shared ? code.scratch_bytes : 0, code.maps};
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
  KernelBuilder builder(*module);
  const int64_t most_shared = ptxCodegenOptions(options).shared_bytes;
  const auto wrap = [&](const KernelCode& code) {
    builder.wrap(code, layOut(code, most_shared));
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
