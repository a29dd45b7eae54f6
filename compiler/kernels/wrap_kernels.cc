// Writes the loop over items around a generated function.
#include "compiler/kernels/wrap_kernels.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/kernels/tensor_map.h"
#include "dialects/exec/piece_table.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

namespace partita::kernels {
namespace {

// For kernels with scratch per thread in device memory: a block's scratch is
// reserved even while the block does not run.
constexpr int64_t kMostBlocksWithScratch = 132 * 4;
// Shared memory that the system takes for each block (chips.cc).
constexpr int64_t kReservedBytes = 1024;
// Alignment of shared memory: the swizzle of tiles read by warpgroups repeats
// after this many bytes.
constexpr int64_t kSharedAlignment = 1024;
constexpr unsigned kGlobalMemory = 1;

// Left to itself, the assembler may spill registers to fit one block more.
// Six blocks on a multiprocessor leave 80 registers to a thread.
constexpr char kBlocksOfPieces[] = "6";
// For attention without tensor cores. Two blocks fit.
constexpr char kRegistersOfThreads[] = "216";

const llvm::ArrayRef<llvm::Type*> kNoTypes;
const llvm::ArrayRef<llvm::Value*> kNoValues;

class KernelBuilder {
 public:
  explicit KernelBuilder(llvm::Module& module)
      : module_(module), context_(module.getContext()), builder_(context_) {}

  void wrap(const KernelCode& code, const BlockLayout& layout) {
    llvm::Function* body = takeBody(code);
    unsigned buffers = body->arg_size() - 3;
    std::vector<llvm::Type*> types(
        buffers + (scratchInMemory(code, layout) > 0), builder_.getPtrTy());
    llvm::Function* kernel = declareKernel(code, layout, types);
    for (llvm::Argument& argument : kernel->args()) {
      argument.addAttr(llvm::Attribute::NoAlias);
      argument.addAttr(
          llvm::Attribute::getWithAlignment(context_, llvm::Align(64)));
    }
    // Maps are passed by value: the accelerator reads them in the parameters.
    const unsigned end = buffers - (code.memory_bytes > 0);
    for (unsigned i = end - code.maps.size(); i < end; ++i)
      passByValue(kernel->getArg(i), kTensorMapBytes);
    emitLoop(code, layout, kernel, body, buffers);
  }

  // A kernel whose only parameter is a table of pieces (piece_table.h).
  void wrapPieces(const KernelCode& code, const BlockLayout& layout) {
    llvm::Function* body = takeBody(code);
    const int64_t buffers = static_cast<int64_t>(body->arg_size()) - 3;
    const int64_t pieces = exec::piecesOfTable(buffers);
    // The kernel's parameters cannot tell.
    for (int64_t i = 0; i < buffers; ++i)
      body->addParamAttr(i, llvm::Attribute::NoAlias);
    llvm::Function* kernel = declareKernel(code, layout, {builder_.getPtrTy()});
    passByValue(kernel->getArg(0), pieces * 8 * (buffers + 1));
    kernel->getArg(0)->addAttr(
        llvm::Attribute::getWithAlignment(context_, llvm::Align(8)));
    emitLoopOverPieces(layout, kernel, body, buffers, pieces);
  }

 private:
  llvm::Function* takeBody(const KernelCode& code) {
    llvm::Function* body = module_.getFunction(code.symbol);
    body->setName(code.symbol + ".body");
    body->setLinkage(llvm::GlobalValue::InternalLinkage);
    body->removeFnAttr(llvm::Attribute::NoInline);
    body->addFnAttr(llvm::Attribute::AlwaysInline);
    return body;
  }

  llvm::Function* declareKernel(const KernelCode& code,
                                const BlockLayout& layout,
                                llvm::ArrayRef<llvm::Type*> types) {
    auto* kernel = llvm::Function::Create(
        llvm::FunctionType::get(builder_.getVoidTy(), types, false),
        llvm::GlobalValue::ExternalLinkage, code.symbol, module_);
    kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
    kernel->addFnAttr("nvvm.maxntid", std::to_string(kBlock));
    if (code.takes_pieces)
      kernel->addFnAttr("nvvm.minctasm", kBlocksOfPieces);
    else if (layout.team == 1)
      kernel->addFnAttr("nvvm.maxnreg", kRegistersOfThreads);
    return kernel;
  }

  void passByValue(llvm::Argument* argument, int64_t bytes) {
    auto* type = llvm::ArrayType::get(builder_.getInt8Ty(), bytes);
    argument->addAttr(llvm::Attribute::getWithByValType(context_, type));
    argument->addAttr(llvm::Attribute::get(context_, "nvvm.grid_constant"));
  }

  // Reads one of the hardware's numbers, as i64.
  llvm::Value* read(llvm::Intrinsic::ID number) {
    return builder_.CreateZExt(
        builder_.CreateIntrinsic(number, kNoTypes, kNoValues),
        builder_.getInt64Ty());
  }

  // This thread's team in the block.
  llvm::Value* teamInBlock(const BlockLayout& layout) {
    return builder_.CreateUDiv(read(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x),
                               builder_.getInt64(layout.team));
  }

  llvm::Value* teamInGrid(const BlockLayout& layout, llvm::Value* in_block) {
    llvm::Value* block = read(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
    return builder_.CreateAdd(
        builder_.CreateMul(block, builder_.getInt64(layout.teams)), in_block);
  }

  // Scratch of the team with this number in its block, and in the grid.
  llvm::Value* scratchOf(const KernelCode& code, const BlockLayout& layout,
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

  llvm::BasicBlock* block(llvm::Function* kernel, const char* name) {
    return llvm::BasicBlock::Create(context_, name, kernel);
  }

  // for (item = this team's number; item < range; item += teams of the grid)
  void emitLoop(const KernelCode& code, const BlockLayout& layout,
                llvm::Function* kernel, llvm::Function* body,
                unsigned buffers) {
    llvm::BasicBlock *entry = block(kernel, "entry"),
                     *loop = block(kernel, "loop"),
                     *done = block(kernel, "done");
    builder_.SetInsertPoint(entry);
    llvm::Value* in_block = teamInBlock(layout);
    llvm::Value* first = teamInGrid(layout, in_block);
    llvm::Value* scratch =
        code.scratch_bytes == 0
            ? llvm::ConstantPointerNull::get(builder_.getPtrTy())
            : scratchOf(code, layout, kernel, in_block, first);
    llvm::Value* range = builder_.getInt64(code.range);
    builder_.CreateCondBr(builder_.CreateICmpULT(first, range), loop, done);

    builder_.SetInsertPoint(loop);
    llvm::PHINode* item = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    item->addIncoming(first, entry);
    std::vector<llvm::Value*> arguments;
    for (unsigned i = 0; i < buffers; ++i)
      arguments.push_back(kernel->getArg(i));
    call(body, arguments, item, scratch);
    llvm::Value* next = builder_.CreateAdd(
        item, builder_.getInt64(layout.blocks * layout.teams));
    item->addIncoming(next, loop);
    builder_.CreateCondBr(builder_.CreateICmpULT(next, range), loop, done);

    builder_.SetInsertPoint(done);
    builder_.CreateRetVoid();
  }

  // The same over the items of all pieces, one piece after the other. A team's
  // items ascend, so it looks for the next piece from its last one.
  void emitLoopOverPieces(const BlockLayout& layout, llvm::Function* kernel,
                          llvm::Function* body, int64_t buffers,
                          int64_t pieces) {
    llvm::Type* i64 = builder_.getInt64Ty();
    llvm::Value* table = kernel->getArg(0);
    const auto word = [&](llvm::Value* number, llvm::Type* type) {
      return builder_.CreateAlignedLoad(
          type, builder_.CreateGEP(i64, table, number), llvm::Align(8));
    };
    llvm::BasicBlock *entry = block(kernel, "entry"),
                     *find = block(kernel, "find"),
                     *skip = block(kernel, "skip"), *run = block(kernel, "run"),
                     *done = block(kernel, "done");
    builder_.SetInsertPoint(entry);
    llvm::Value *zero = builder_.getInt64(0), *one = builder_.getInt64(1);
    llvm::Value* first = teamInGrid(layout, teamInBlock(layout));
    llvm::Value* stride =
        builder_.CreateMul(read(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x),
                           builder_.getInt64(layout.teams));
    llvm::Value* all = word(builder_.getInt64(pieces - 1), i64);
    builder_.CreateCondBr(builder_.CreateICmpULT(first, all), find, done);

    builder_.SetInsertPoint(find);
    llvm::PHINode *item = builder_.CreatePHI(i64, 3),
                  *piece = builder_.CreatePHI(i64, 3),
                  *begin = builder_.CreatePHI(i64, 3);
    const auto comeFrom = [&](llvm::BasicBlock* from, llvm::Value* new_item,
                              llvm::Value* new_piece, llvm::Value* new_begin) {
      item->addIncoming(new_item, from);
      piece->addIncoming(new_piece, from);
      begin->addIncoming(new_begin, from);
    };
    comeFrom(entry, first, zero, zero);
    llvm::Value* end = word(piece, i64);
    builder_.CreateCondBr(builder_.CreateICmpULT(item, end), run, skip);

    builder_.SetInsertPoint(skip);
    comeFrom(skip, item, builder_.CreateAdd(piece, one), end);
    builder_.CreateBr(find);

    builder_.SetInsertPoint(run);
    llvm::Value* row = builder_.CreateAdd(
        builder_.getInt64(pieces),
        builder_.CreateMul(piece, builder_.getInt64(buffers)));
    std::vector<llvm::Value*> arguments;
    for (int64_t i = 0; i < buffers; ++i) {
      llvm::Value* pointer = word(builder_.CreateAdd(row, builder_.getInt64(i)),
                                  builder_.getPtrTy());
      // Tells LLVM that the memory is global, as it knows of parameters.
      arguments.push_back(builder_.CreateAddrSpaceCast(
          builder_.CreateAddrSpaceCast(pointer,
                                       builder_.getPtrTy(kGlobalMemory)),
          builder_.getPtrTy()));
    }
    call(body, arguments, builder_.CreateSub(item, begin),
         llvm::ConstantPointerNull::get(builder_.getPtrTy()));
    llvm::Value* next = builder_.CreateAdd(item, stride);
    comeFrom(run, next, piece, begin);
    builder_.CreateCondBr(builder_.CreateICmpULT(next, all), find, done);

    builder_.SetInsertPoint(done);
    builder_.CreateRetVoid();
  }

  void call(llvm::Function* body, std::vector<llvm::Value*> arguments,
            llvm::Value* item, llvm::Value* scratch) {
    arguments.push_back(item);
    arguments.push_back(builder_.CreateAdd(item, builder_.getInt64(1)));
    arguments.push_back(scratch);
    builder_.CreateCall(body, arguments);
  }

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> builder_;
};

}  // namespace

BlockLayout layOut(const KernelCode& code, int64_t most_shared) {
  BlockLayout layout;
  layout.team = code.team;
  layout.teams = kBlock / code.team;
  // At least two blocks of several teams must fit a multiprocessor, which has
  // as much as a block may request and kReservedBytes, and takes these for
  // each.
  const int64_t most_of_block =
      layout.teams == 1
          ? most_shared
          : std::max(kSharedBytes,
                     (most_shared + kReservedBytes) / 2 - kReservedBytes);
  layout.shared = code.scratch_bytes > 0 && code.team > 1 &&
                  code.scratch_bytes * layout.teams <= most_of_block;
  layout.dynamic_shared =
      layout.shared && code.scratch_bytes * layout.teams > kSharedBytes;
  int64_t most = code.scratch_bytes > 0 && !layout.shared
                     ? kMostBlocksWithScratch
                     : exec::kMostBlocks;
  layout.blocks = std::clamp<int64_t>(
      (code.range + layout.teams - 1) / layout.teams, 1, most);
  return layout;
}

int64_t scratchInMemory(const KernelCode& code, const BlockLayout& layout) {
  return layout.shared ? 0 : code.scratch_bytes * layout.teams * layout.blocks;
}

void wrapKernel(llvm::Module& module, const KernelCode& code,
                const BlockLayout& layout) {
  KernelBuilder builder(module);
  if (code.takes_pieces)
    builder.wrapPieces(code, layout);
  else
    builder.wrap(code, layout);
}

}  // namespace partita::kernels
