// Removes and changes calls of the target's functions.
#include "compiler/kernels/damaged_kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "compiler/kernels/emit_team.h"
#include "compiler/kernels/emit_tile_ring.h"
#include "compiler/kernels/emit_warpgroup.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace partita::kernels {

using namespace mlir;

namespace {

// Restricts the call to thread 0.
void callByOne(OpBuilder& builder, func::CallOp call) {
  const Location loc = call.getLoc();
  Value thread =
      func::CallOp::create(builder, loc, kBlockThread, builder.getI64Type())
          .getResult(0);
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(0));
  Value first = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                      thread, zero);
  auto branch =
      scf::IfOp::create(builder, loc, first, /*withElseRegion=*/false);
  call->moveBefore(branch.thenBlock()->getTerminator());
}

void change(func::CallOp call, int by) {
  OpBuilder builder(call);
  Value change = arith::ConstantOp::create(builder, call.getLoc(),
                                           builder.getI32IntegerAttr(by));
  // The number of pending groups comes first; others follow an address.
  const unsigned at = call.getCallee().starts_with(kGroupWait) ? 0 : 2;
  Value given = call.getOperand(at);
  call.setOperand(
      at, call.getCallee() == kBarrierWait
              ? arith::XOrIOp::create(builder, call.getLoc(), given, change)
                    .getResult()
              : arith::AddIOp::create(builder, call.getLoc(), given, change)
                    .getResult());
}

}  // namespace

void apply(const Damage& damage, ModuleOp module) {
  SmallVector<func::CallOp> calls;
  int count = 0;
  module.walk([&](func::CallOp call) {
    if (call.getCallee() != damage.function) return;
    if (damage.which < 0 || count % damage.period == damage.which)
      calls.push_back(call);
    ++count;
  });
  EXPECT_FALSE(calls.empty());
  if (damage.which >= 0) EXPECT_EQ(count % damage.period, 0) << count;
  for (func::CallOp call : calls) {
    if (damage.change == 0) {
      call.erase();
    } else if (damage.change == kAlone) {
      OpBuilder builder(call);
      callByOne(builder, call);
    } else {
      change(call, damage.change);
    }
  }
}

void expectFound(
    const std::string& text, const CodegenOptions& options,
    const Damage& damage,
    const std::function<std::string(CompiledKernel&)>& difference) {
  std::unique_ptr<CompiledKernel> kernel =
      CompiledKernel::fromText(text, options, /*flat=*/false,
                               [&](ModuleOp module) { apply(damage, module); });
  ASSERT_NE(kernel, nullptr);
  const auto run = [&] {
    const std::string wrong = difference(*kernel);
    std::cerr << wrong;
    std::exit(wrong.empty() ? 0 : 1);
  };
  EXPECT_EXIT(run(), [](int status) { return status != 0; }, damage.message);
}

}  // namespace partita::kernels
