// Defines the functions that teams and tensor cores call, as PTX instructions.
#include "compiler/kernels/ptx_target.h"

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/emit_fragments.h"
#include "compiler/kernels/emit_team.h"
#include "compiler/kernels/emit_tile_ring.h"
#include "compiler/kernels/emit_turns.h"
#include "compiler/kernels/emit_warpgroup.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

namespace partita::kernels {
namespace {

constexpr unsigned kGlobalMemory = 1, kSharedMemory = 3, kClusterMemory = 7;

class TargetFunctions {
 public:
  explicit TargetFunctions(llvm::Module& module)
      : module_(module), builder_(module.getContext()) {}

  void define() {
    defineTeams();
    defineProducts();
    defineLoads();
    defineCopies();
    for (const char* type : {"bf16", "f16"}) defineGroupProducts(type);
    defineGroups();
    defineBarriers();
    defineTurns();
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

  // Splits each float into the sum of two tf32, of 11 bits each. The product of
  // the small parts is left out.
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

  // Emits the four steps of a product as one piece of assembly, so that no
  // instruction between the fence and the product fills the registers it reads.
  void defineGroupProducts(const std::string& type) {
    const auto steps = [&](int64_t columns, int first, bool starts,
                           bool in_registers) {
      std::string text;
      const std::string sums = registers(0, columns / 2);
      for (int step = 0; step < 4; ++step) {
        // With the left matrix in registers, rows of the right one are
        // contiguous; with both in shared memory, columns are.
        const std::string left = in_registers
                                     ? registers(first + 4 * step, 4)
                                     : "$" + std::to_string(first + step);
        text += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) +
                "k16.f32." + type + "." + type + " " + sums + ", " + left +
                ", $" + std::to_string(first + (in_registers ? 16 : 4) + step) +
                (starts && step == 0 ? ", 0" : ", 1") + ", 1, 1, " +
                (in_registers ? "1;\n" : "0, 0;\n");
      }
      return text;
    };
    const std::string fence = "wgmma.fence.sync.aligned;\n";
    const int64_t keys = kGroupRows;
    const int half = static_cast<int>(keys / 2);
    defineFunction(kGroupStart + ("_" + type), [&](Arguments arguments) {
      return assemble(fence + steps(keys, half, true, false), keys, arguments);
    });
    // The sums are in flight already: no fence.
    defineFunction(kGroupAdd + ("_" + type), [&](Arguments arguments) {
      return assemble(steps(keys, half, false, false), keys, arguments);
    });
    for (int64_t columns : {64, 128}) {
      defineFunction(
          kGroupAddTiles + ("_" + type + "_" + std::to_string(columns)),
          [&](Arguments arguments) {
            return assemble(fence + stepsOfTiles(type, columns), columns,
                            arguments);
          });
      defineFunction(
          kGroupAddTimes + ("_" + type + "_" + std::to_string(columns)),
          [&](Arguments arguments) {
            return assemble(
                fence +
                    steps(columns, static_cast<int>(columns / 2), false, true),
                columns, arguments);
          });
    }
  }

  // The results; then the descriptors, and the constants that tell which
  // operands are transposed.
  static std::string stepsOfTiles(const std::string& type, int64_t columns) {
    std::string text;
    const int first = static_cast<int>(columns / 2);
    const auto at = [&](int i) { return ", $" + std::to_string(first + i); };
    for (int step = 0; step < 4; ++step)
      text += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) +
              "k16.f32." + type + "." + type + " " + registers(0, first) +
              at(step) + at(4 + step) + ", 1, 1, 1" + at(8) + at(9) + ";\n";
    return text;
  }

  void defineGroups() {
    defineFunction(kGroupCommit, [&](Arguments) {
      return call(llvm::Intrinsic::nvvm_wgmma_commit_group_sync_aligned, {});
    });
    // The assembly seems to change the sums, so that no reader moves before it.
    for (int64_t columns : {64, 128})
      defineFunction(kGroupWait + ("_" + std::to_string(columns)),
                     [&](Arguments arguments) {
                       return assemble("wgmma.wait_group.sync.aligned $" +
                                           std::to_string(columns / 2) + ";\n",
                                       columns, arguments);
                     });
    // Side effects keep LLVM from moving it.
    defineFunction(kSharedAddress, [&](Arguments arguments) {
      llvm::Type* i64 = builder_.getInt64Ty();
      llvm::Value* address = addressOf(builder_.CreateAddrSpaceCast(
          arguments[0], builder_.getPtrTy(kSharedMemory)));
      return builder_.CreateCall(
          llvm::InlineAsm::get(llvm::FunctionType::get(i64, {i64}, false),
                               "mov.b64 $0, $1;", "=l,l",
                               /*hasSideEffects=*/true),
          {address});
    });
    defineFunction(kFenceTiles, [&](Arguments) {
      return call(llvm::Intrinsic::nvvm_fence_proxy_async_shared_cta, {});
    });
  }

  void defineBarriers() {
    using namespace llvm::Intrinsic;
    defineFunction(kBarrierMake, [&](Arguments arguments) {
      return call(nvvm_mbarrier_init_shared,
                  {sharedAt(arguments), arguments[2]});
    });
    defineFunction(kBarrierEnd, [&](Arguments arguments) {
      return call(nvvm_mbarrier_inval_shared, {sharedAt(arguments)});
    });
    defineFunction(kBarrierArrive, [&](Arguments arguments) {
      return call(nvvm_mbarrier_arrive_scope_cta_space_cta,
                  {sharedAt(arguments), builder_.getInt32(1)});
    });
    defineFunction(kBarrierExpect, [&](Arguments arguments) {
      return callIf("mbarrier.arrive.expect_tx.shared.b64 _, [$0], $1;",
                    {addressOf(sharedAt(arguments)), arguments[2]},
                    arguments[3]);
    });
    defineFunction(kBarrierWait, [&](Arguments arguments) {
      llvm::Value* barrier = sharedAt(arguments);
      llvm::Function* function = builder_.GetInsertBlock()->getParent();
      const auto block = [&](const char* name) {
        return llvm::BasicBlock::Create(module_.getContext(), name, function);
      };
      llvm::BasicBlock *again = block("again"), *over = block("over");
      builder_.CreateBr(again);
      builder_.SetInsertPoint(again);
      llvm::Value* is_over =
          call(nvvm_mbarrier_try_wait_parity_scope_cta_space_cta,
               {barrier, arguments[2]});
      builder_.CreateCondBr(is_over, over, again);
      builder_.SetInsertPoint(over);
      return is_over;
    });
    // Here each block is a cluster, so its shared memory is the cluster's.
    defineFunction(kCopyBox, [&](Arguments arguments) {
      llvm::Value* to = builder_.CreateAddrSpaceCast(
          sharedAt(arguments), builder_.getPtrTy(kClusterMemory));
      llvm::Value* barrier = sharedAt({arguments[0], arguments[2]});
      // The innermost dimension comes first.
      return callIf(
          "cp.async.bulk.tensor.4d.shared::cluster.global.tile."
          "mbarrier::complete_tx::bytes [$0], [$2, {$3, $4, $5, $6}], [$1];",
          {addressOf(to), addressOf(barrier), addressOf(arguments[3]),
           arguments[7], arguments[6], arguments[5], arguments[4]},
          arguments[8]);
    });
  }

  void defineTurns() {
    llvm::Type* i32 = builder_.getInt32Ty();
    defineFunction(kTakeTicket, [&](Arguments arguments) {
      return assembleAccess("atom.add.relaxed.gpu.global.u32 $0, [$1], 1;",
                            "=r,l", i32, arguments);
    });
    defineFunction(kAwaitTurn, [&](Arguments arguments) {
      llvm::Function* function = builder_.GetInsertBlock()->getParent();
      const auto block = [&](const char* name) {
        return llvm::BasicBlock::Create(module_.getContext(), name, function);
      };
      llvm::BasicBlock *again = block("again"), *over = block("over");
      builder_.CreateBr(again);
      builder_.SetInsertPoint(again);
      llvm::Value* turn = assembleAccess("ld.acquire.gpu.global.u32 $0, [$1];",
                                         "=r,l", i32, arguments.take_front());
      builder_.CreateCondBr(builder_.CreateICmpEQ(turn, arguments[1]), over,
                            again);
      builder_.SetInsertPoint(over);
      return turn;
    });
    defineFunction(kPassTurn, [&](Arguments arguments) {
      return assembleAccess("st.release.gpu.global.u32 [$0], $1;", "l,r",
                            builder_.getVoidTy(), arguments);
    });
  }

  // One instruction that accesses memory which other threads access, too.
  llvm::Value* assembleAccess(const char* text, const std::string& constraints,
                              llvm::Type* result, Arguments arguments) {
    llvm::SmallVector<llvm::Type*> types;
    for (llvm::Value* argument : arguments)
      types.push_back(argument->getType());
    return builder_.CreateCall(
        llvm::InlineAsm::get(llvm::FunctionType::get(result, types, false),
                             text, constraints + ",~{memory}",
                             /*hasSideEffects=*/true),
        arguments);
  }

  llvm::Value* addressOf(llvm::Value* pointer) {
    return builder_.CreatePtrToInt(pointer, builder_.getInt64Ty());
  }

  // One assembly instruction on addresses and words. It is skipped if
  // `condition`, a word, is 0.
  llvm::Value* callIf(const std::string& text,
                      llvm::SmallVector<llvm::Value*> operands,
                      llvm::Value* condition) {
    const std::string number = std::to_string(operands.size());
    operands.push_back(condition);
    std::string constraints;
    llvm::SmallVector<llvm::Type*> types;
    for (llvm::Value* operand : operands) {
      types.push_back(operand->getType());
      constraints += types.back()->isIntegerTy(64) ? "l," : "r,";
    }
    llvm::CallInst* result = builder_.CreateCall(
        llvm::InlineAsm::get(
            llvm::FunctionType::get(builder_.getVoidTy(), types, false),
            "{\n.reg .pred does;\nsetp.ne.b32 does, $" + number +
                ", 0;\n@does " + text + "\n}",
            constraints + "~{memory}", /*hasSideEffects=*/true),
        operands);
    result->setConvergent();
    return result;
  }

  // "{$first, ...}"
  static std::string registers(int first, int64_t count) {
    std::string text;
    for (int i = first; i < first + count; ++i)
      text += (text.empty() ? "{$" : ", $") + std::to_string(i);
    return text + "}";
  }

  // Assembly with `columns` / 2 floats as results: $0 .... The arguments
  // follow. 64-bit numbers take a register each, and other scalars are
  // constants. Vectors of words take registers; vectors of floats take the
  // registers of the results.
  llvm::Value* assemble(const std::string& text, int64_t columns,
                        Arguments arguments) {
    std::string constraints;
    llvm::SmallVector<llvm::Value*> operands;
    llvm::Type* f32 = builder_.getFloatTy();
    for (int i = 0; i < columns / 2; ++i) constraints += i > 0 ? ",=f" : "=f";
    int sums = 0;
    for (llvm::Value* argument : arguments) {
      llvm::Type* type = argument->getType();
      if (!type->isVectorTy()) {
        constraints += type->isIntegerTy(64) ? ",l" : ",n";
        operands.push_back(argument);
        continue;
      }
      for (int i = 0; i < 4; ++i) {
        operands.push_back(builder_.CreateExtractElement(argument, i));
        constraints +=
            type->getScalarType() == f32 ? "," + std::to_string(sums++) : ",r";
      }
    }
    constraints += ",~{memory}";
    const llvm::SmallVector<llvm::Type*> floats(columns / 2, f32);
    llvm::SmallVector<llvm::Type*> types;
    for (llvm::Value* operand : operands) types.push_back(operand->getType());
    llvm::CallInst* result = builder_.CreateCall(
        llvm::InlineAsm::get(
            llvm::FunctionType::get(
                llvm::StructType::get(module_.getContext(), floats), types,
                false),
            text, constraints, /*hasSideEffects=*/true),
        operands);
    result->setConvergent();
    return sumsOf(result, columns);
  }

  // Groups the floats into vectors of four.
  llvm::Value* sumsOf(llvm::Value* floats, int64_t columns) {
    auto* four = llvm::FixedVectorType::get(builder_.getFloatTy(), 4);
    const llvm::SmallVector<llvm::Type*> types(columns / 8, four);
    llvm::Value* sums = llvm::PoisonValue::get(
        llvm::StructType::get(module_.getContext(), types));
    for (unsigned i = 0; i < columns / 8; ++i) {
      llvm::Value* vector = llvm::PoisonValue::get(four);
      for (unsigned j = 0; j < 4; ++j)
        vector = builder_.CreateInsertElement(
            vector, builder_.CreateExtractValue(floats, 4 * i + j), j);
      sums = builder_.CreateInsertValue(sums, vector, i);
    }
    return sums;
  }

  // The address in shared memory of a base in scratch and an offset.
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

  void defineFunction(const std::string& name,
                      llvm::function_ref<llvm::Value*(Arguments)> body) {
    llvm::Function* function = module_.getFunction(name);
    if (!function) return;
    function->setLinkage(llvm::GlobalValue::InternalLinkage);
    function->addFnAttr(llvm::Attribute::AlwaysInline);
    // Threads call it together: it must not move to where fewer threads come.
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
