// Depthwise convolutions with several outputs per channel; see passes.td.
#include "compiler/kernels/passes.h"
#include "llvm/ADT/Sequence.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_REPEATCHANNELSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::RankedTensorType;

// Outputs per channel of a depthwise convolution; 0 for other convolutions.
int64_t outputsPerChannel(nn::ConvOp conv) {
  const RankedTensorType weight = conv.getWeight().getType();
  if (weight.getDimSize(1) != 1 || conv.getGroups() == 1) return 0;
  return weight.getDimSize(0) / conv.getGroups();
}

class RepeatChannels : public impl::RepeatChannelsPassBase<RepeatChannels> {
 public:
  using RepeatChannelsPassBase::RepeatChannelsPassBase;

  void runOnOperation() override {
    getOperation().walk([&](nn::ConvOp conv) {
      const int64_t outputs = outputsPerChannel(conv);
      if (outputs < 2 || outputs > most || !conv.getChannelsLast() ||
          !conv.getType().getElementType().isF32() ||
          conv.getInput().getType().getNumElements() == 0)
        return;
      repeat(conv, outputs);
      ++repeated;
    });
  }

 private:
  static void repeat(nn::ConvOp conv, int64_t outputs) {
    mlir::OpBuilder builder(conv);
    const RankedTensorType type = conv.getInput().getType();
    SmallVector<int64_t> shape(type.getShape());
    shape.push_back(outputs);
    const mlir::Value copies = nn::BroadcastOp::create(
        builder, conv.getLoc(), type.clone(shape), conv.getInput(),
        llvm::to_vector(llvm::seq<int64_t>(0, type.getRank())));
    shape.pop_back();
    shape.back() *= outputs;
    const mlir::Value input = nn::ReshapeOp::create(builder, conv.getLoc(),
                                                    type.clone(shape), copies);
    conv.getInputMutable().assign(input);
    conv.setGroups(conv.getGroups() * outputs);
  }
};

}  // namespace
}  // namespace partita::kernels
