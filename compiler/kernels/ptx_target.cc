// Bodies of the functions that teams and tensor cores stand for: instructions
// of PTX.
#include "compiler/kernels/ptx_target.h"

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/emit_fragments.h"
#include "compiler/kernels/emit_team.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

namespace partita::kernels {
namespace {

constexpr unsigned kGlobalMemory = 1, kSharedMemory = 3;

class TargetFunctions {
 public:
  explicit TargetFunctions(llvm::Module& module)
      : module_(module), builder_(module.getContext()) {}

  void define() {
    defineTeams();
    defineProducts();
    defineLoads();
    defineCopies();
    defineFunction(kExp2, [&](Arguments arguments) {
      return call(llvm::Intrinsic::nvvm_ex2_approx_ftz, arguments,
                  {builder_.getFloatTy()});
    });
  }

 private:
  using Arguments = llvm::ArrayRef<llvm::Value*>;

  void defineTeams() {
    llvm::Type* i64 = builder_.getInt64Ty();
    llvm::Value* all = builder_.getInt32(-1);
    const auto thread = [&] {
      return call(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
    };
    defineFunction(kTeamThread, [&](Arguments) {
      return builder_.CreateZExt(
          builder_.CreateAnd(thread(), builder_.getInt32(kWarp - 1)), i64);
    });
    defineFunction(kBlockThread, [&](Arguments) {
      return builder_.CreateZExt(
          builder_.CreateAnd(thread(), builder_.getInt32(kBlock - 1)), i64);
    });
    defineFunction(kTeamExchange, [&](Arguments arguments) {
      return call(
          llvm::Intrinsic::nvvm_shfl_sync_bfly_i32,
          {all, arguments[0], arguments[1], builder_.getInt32(kWarp - 1)});
    });
    defineFunction(kTeamSync, [&](Arguments) {
      return call(llvm::Intrinsic::nvvm_bar_warp_sync, {all});
    });
    defineFunction(kBlockSync, [&](Arguments) {
      return call(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all,
                  {builder_.getInt32(0)});
    });
  }

  void defineProducts() {
    defineFunction(kMultiplyBf16, [&](Arguments arguments) {
      return multiply(llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16,
                      builder_.getInt32Ty(), arguments);
    });
    defineFunction(kMultiplyF16, [&](Arguments arguments) {
      return multiply(llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32,
                      llvm::FixedVectorType::get(builder_.getHalfTy(), 2),
                      arguments);
    });
    defineFunction(kMultiplyF32, [&](Arguments arguments) {
      return multiplyFloats(arguments);
    });
  }

  // A float is taken as the sum of two of tf32, of 11 bits each; the product of
  // the small ones is left out.
  llvm::Value* multiplyFloats(Arguments arguments) {
    llvm::SmallVector<llvm::Value*> large, small;
    for (int i = 0; i < 6; ++i) {
      llvm::Value* value = i < 4
                               ? builder_.CreateExtractElement(arguments[0], i)
                               : arguments[i - 3];
      large.push_back(call(llvm::Intrinsic::nvvm_f2tf32_rna, {value}));
      llvm::Value* rest = builder_.CreateFSub(
          value, builder_.CreateBitCast(large[i], builder_.getFloatTy()));
      small.push_back(call(llvm::Intrinsic::nvvm_f2tf32_rna, {rest}));
    }
    llvm::Value* sums = multiplyParts(small, large, arguments[3]);
    sums = multiplyParts(large, small, sums);
    return multiplyParts(large, large, sums);
  }

  llvm::Value* multiplyParts(Arguments left, Arguments right,
                             llvm::Value* sums) {
    llvm::SmallVector<llvm::Value*> operands(left.take_front(4));
    operands.append({right[4], right[5]});
    for (int i = 0; i < 4; ++i)
      operands.push_back(builder_.CreateExtractElement(sums, i));
    return vectorOf(
        call(llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32, operands));
  }

  llvm::Value* multiply(llvm::Intrinsic::ID intrinsic, llvm::Type* word,
                        Arguments arguments) {
    llvm::SmallVector<llvm::Value*> operands;
    for (int i = 0; i < 4; ++i)
      operands.push_back(builder_.CreateExtractElement(arguments[0], i));
    operands.append({arguments[1], arguments[2]});
    for (llvm::Value*& operand : operands)
      operand = builder_.CreateBitCast(operand, word);
    for (int i = 0; i < 4; ++i)
      operands.push_back(builder_.CreateExtractElement(arguments[3], i));
    return vectorOf(call(intrinsic, operands));
  }

  void defineLoads() {
    const std::pair<const char*, llvm::Intrinsic::ID> kinds[] = {
        {kLoadMatrices,
         llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16},
        {kLoadTransposed,
         llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16}};
    for (auto [name, intrinsic] : kinds)
      defineFunction(name, [&, intrinsic = intrinsic](Arguments arguments) {
        llvm::Value* from = sharedAt(arguments);
        return vectorOf(call(intrinsic, {from}, {from->getType()}));
      });
  }

  void defineCopies() {
    defineFunction(kCopy, [&](Arguments arguments) {
      llvm::Value* from =
          builder_.CreateIntToPtr(arguments[2], builder_.getPtrTy());
      from =
          builder_.CreateAddrSpaceCast(from, builder_.getPtrTy(kGlobalMemory));
      return call(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16,
                  {sharedAt(arguments), from});
    });
    defineFunction(kWaitForCopies, [&](Arguments) {
      return call(llvm::Intrinsic::nvvm_cp_async_wait_all, {});
    });
  }

  // Of a base in scratch and an offset.
  llvm::Value* sharedAt(Arguments arguments) {
    llvm::Value* at =
        builder_.CreateGEP(builder_.getInt8Ty(), arguments[0], arguments[1]);
    return builder_.CreateAddrSpaceCast(at, builder_.getPtrTy(kSharedMemory));
  }

  llvm::Value* vectorOf(llvm::Value* parts) {
    const unsigned count = parts->getType()->getStructNumElements();
    llvm::Value* vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(
        parts->getType()->getStructElementType(0), count));
    for (unsigned i = 0; i < count; ++i)
      vector = builder_.CreateInsertElement(
          vector, builder_.CreateExtractValue(parts, i), i);
    return vector;
  }

  llvm::Value* call(llvm::Intrinsic::ID intrinsic, Arguments arguments,
                    llvm::ArrayRef<llvm::Type*> types = {}) {
    return builder_.CreateIntrinsic(intrinsic, types, arguments);
  }

  void defineFunction(const char* name,
                      llvm::function_ref<llvm::Value*(Arguments)> body) {
    llvm::Function* function = module_.getFunction(name);
    if (!function) return;
    function->setLinkage(llvm::GlobalValue::InternalLinkage);
    function->addFnAttr(llvm::Attribute::AlwaysInline);
    // Threads call it together: it may not move to where fewer come.
    function->addFnAttr(llvm::Attribute::Convergent);
    builder_.SetInsertPoint(
        llvm::BasicBlock::Create(module_.getContext(), "entry", function));
    llvm::SmallVector<llvm::Value*> arguments;
    for (llvm::Argument& argument : function->args())
      arguments.push_back(&argument);
    llvm::Value* result = body(arguments);
    if (function->getReturnType()->isVoidTy())
      builder_.CreateRetVoid();
    else
      builder_.CreateRet(result);
  }

  llvm::Module& module_;
  llvm::IRBuilder<> builder_;
};

}  // namespace

void defineTargetFunctions(llvm::Module& module) {
  TargetFunctions(module).define();
}

}  // namespace partita::kernels
