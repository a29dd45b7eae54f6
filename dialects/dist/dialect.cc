// Registration of the dist dialect; mesh queries: group sizes, blocks and local
// types.
#include "dialects/dist/dialect.h"

#include "dialects/nn/rule_builder.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"

// clang-format off
#include "dialects/dist/dialect.cc.inc"
#include "dialects/dist/enums.cc.inc"
// clang-format on

namespace partita::dist {

void DistDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/ops.cc.inc"
      >();
}

MeshOp findMesh(mlir::Operation* op) {
  auto module = llvm::dyn_cast<mlir::ModuleOp>(op);
  if (!module) module = op->getParentOfType<mlir::ModuleOp>();
  if (!module) return nullptr;
  // Find the mesh by class, not by symbol name: a pass on one function may run
  // while other functions are being renamed.
  for (MeshOp mesh : module.getOps<MeshOp>()) return mesh;
  return nullptr;
}

int64_t MeshOp::indexOf(llvm::StringRef name) {
  for (auto [index, axis] : llvm::enumerate(getAxes().getAxes()))
    if (axis.getName() == name) return index;
  return -1;
}

int64_t MeshOp::sizeOf(AxisAttr axis) {
  return axis.isWhole() ? getAxes().getAxes()[indexOf(axis.getName())].getSize()
                        : axis.getSize();
}

int64_t MeshOp::sizeOf(llvm::ArrayRef<AxisAttr> axes) {
  int64_t size = 1;
  for (AxisAttr axis : axes) size *= sizeOf(axis);
  return size;
}

int64_t MeshOp::getDeviceCount() {
  int64_t count = 1;
  for (MeshAxisAttr axis : getAxes().getAxes()) count *= axis.getSize();
  return count;
}

int64_t blockOf(MeshOp mesh, DimAttr dim, int64_t size) {
  if (dim.getBlock() > 0) return dim.getBlock();
  const int64_t shards = dim.getAxes().empty() ? 1 : mesh.sizeOf(dim.getAxes());
  return (size + shards - 1) / shards;
}

mlir::RankedTensorType localType(MeshOp mesh, ShardingAttr sharding,
                                 mlir::RankedTensorType global) {
  llvm::SmallVector<int64_t> shape;
  for (auto [dim, size] :
       llvm::zip_equal(sharding.getDims(), global.getShape()))
    shape.push_back(blockOf(mesh, dim, size));
  return global.clone(shape);
}

namespace {

nn::ShardingRule identityRule(mlir::Operation* op) {
  nn::RuleBuilder rule(op);
  for (int64_t dim = 0; dim < rule.resultRank(); ++dim) rule.carry(dim, dim);
  rule.linear({0});
  return rule.take();
}

}  // namespace

nn::ShardingRule ConstraintOp::getShardingRule() { return identityRule(*this); }
nn::ShardingRule GroupOp::getShardingRule() { return identityRule(*this); }

}  // namespace partita::dist
