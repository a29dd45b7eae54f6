// A kernel is flat if all of its tensors are scalars or have the same number of
// elements, and no operation moves an element. Two kernels are alike if they
// are equal as functions of one dimension.
#include "compiler/kernels/flat_kernels.h"

#include <algorithm>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace partita::kernels {
namespace {

using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::FuncOp;

// A chunk is at least several vectors, and at most the chunk of other kernels.
constexpr int64_t kLeastChunk = 64, kMostChunk = 2048;
// A chunk that a warp reads in several steps of 16 bytes per thread.
constexpr int64_t kLargeChunk = 1024;
// Several chunks, so that the code depends on the chunk's number.
constexpr int64_t kChunks = int64_t{1} << 20;

// Elements of the tensors that are not scalars.
int64_t elementsOf(FuncOp kernel) {
  return llvm::cast<RankedTensorType>(kernel.getResultTypes()[0])
      .getNumElements();
}

bool fits(mlir::Type type, int64_t elements) {
  auto tensor = llvm::dyn_cast<RankedTensorType>(type);
  return tensor &&
         (tensor.getNumElements() == elements || tensor.getNumElements() == 1);
}

bool isFlat(mlir::Operation& op, int64_t elements) {
  const auto fit = [&](mlir::TypeRange types) {
    return llvm::all_of(types,
                        [&](mlir::Type type) { return fits(type, elements); });
  };
  if (!fit(op.getOperandTypes()) || !fit(op.getResultTypes())) return false;
  if (llvm::isa<mlir::func::ReturnOp, nn::ReshapeOp>(op)) return true;
  if (auto broadcast = llvm::dyn_cast<nn::BroadcastOp>(op))
    return broadcast.getInput().getType().getNumElements() == 1;
  mlir::DenseElementsAttr constant;
  return mlir::matchPattern(&op, mlir::m_Constant(&constant))
             ? constant.isSplat()
             : mlir::OpTrait::hasElementwiseMappableTraits(&op);
}

bool isFlat(FuncOp kernel) {
  if (kernel.getNumResults() == 0) return false;
  const int64_t elements = elementsOf(kernel);
  return elements % kLeastChunk == 0 && elements > 0 &&
         llvm::all_of(
             kernel.getResultTypes(),
             [&](mlir::Type type) {
               return llvm::cast<RankedTensorType>(type).getNumElements() ==
                      elements;
             }) &&
         llvm::all_of(kernel.getArgumentTypes(),
                      [&](mlir::Type type) { return fits(type, elements); }) &&
         llvm::all_of(kernel.front(), [&](mlir::Operation& op) {
           return isFlat(op, elements);
         });
}

std::string textOf(FuncOp form) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  form.print(stream,
             mlir::OpPrintingFlags().useLocalScope().enableDebugInfo(false));
  return text;
}

// Kernels are together if they have the same form in chunks of the size that
// `least` returns for their elements.
std::vector<FlatGroup> groupsOf(llvm::ArrayRef<FuncOp> kernels,
                                llvm::function_ref<int64_t(int64_t)> least) {
  std::vector<FlatGroup> groups;
  llvm::StringMap<size_t> known;
  for (FuncOp kernel : kernels) {
    if (!isFlat(kernel)) continue;
    FuncOp form = flatForm(kernel, least(elementsOf(kernel)));
    auto [place, is_new] = known.try_emplace(textOf(form), groups.size());
    form.erase();
    if (is_new) groups.emplace_back();
    FlatGroup& group = groups[place->second];
    group.kernels.push_back(kernel);
    group.elements.push_back(elementsOf(kernel));
  }
  for (FlatGroup& group : groups) {
    group.chunk = kMostChunk;
    for (const int64_t elements : group.elements)
      while (elements % group.chunk != 0) group.chunk /= 2;
  }
  return groups;
}

}  // namespace

FuncOp flatForm(FuncOp kernel, int64_t chunk) {
  const auto flat = [&](mlir::Type type) -> RankedTensorType {
    auto tensor = llvm::cast<RankedTensorType>(type);
    if (tensor.getNumElements() == 1)
      return tensor.clone(llvm::ArrayRef<int64_t>());
    return tensor.clone({chunk * kChunks});
  };
  const auto all = [&](mlir::TypeRange types) {
    return llvm::map_to_vector(
        types, [&](mlir::Type type) -> mlir::Type { return flat(type); });
  };
  FuncOp form =
      FuncOp::create(kernel.getLoc(), "flat",
                     mlir::FunctionType::get(kernel.getContext(),
                                             all(kernel.getArgumentTypes()),
                                             all(kernel.getResultTypes())));
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(form.addEntryBlock());
  form->setAttr(kFlatChunkAttr, builder.getI64IntegerAttr(chunk));
  mlir::IRMapping map;
  map.map(kernel.getArguments(), form.getArguments());
  for (mlir::Operation& op : kernel.front()) {
    if (auto reshape = llvm::dyn_cast<nn::ReshapeOp>(op)) {
      map.map(reshape.getResult(), map.lookup(reshape.getInput()));
      continue;
    }
    if (auto broadcast = llvm::dyn_cast<nn::BroadcastOp>(op)) {
      map.map(broadcast.getResult(),
              nn::BroadcastOp::create(
                  builder, op.getLoc(), flat(broadcast.getType()),
                  map.lookup(broadcast.getInput()), llvm::ArrayRef<int64_t>())
                  .getResult());
      continue;
    }
    mlir::DenseElementsAttr constant;
    if (mlir::matchPattern(&op, mlir::m_Constant(&constant))) {
      map.map(op.getResult(0),
              mlir::arith::ConstantOp::create(
                  builder, op.getLoc(),
                  constant.resizeSplat(flat(constant.getType())))
                  .getResult());
      continue;
    }
    mlir::Operation* clone = builder.clone(op, map);
    for (mlir::OpResult result : clone->getResults())
      result.setType(flat(result.getType()));
  }
  return form;
}

std::vector<FlatGroup> findFlatGroups(llvm::ArrayRef<FuncOp> kernels) {
  std::vector<FlatGroup> groups =
      groupsOf(kernels, [](int64_t) { return kLeastChunk; });
  llvm::erase_if(
      groups, [](const FlatGroup& group) { return group.kernels.size() < 2; });
  return groups;
}

std::vector<FlatGroup> findFlatGroupsForGpus(llvm::ArrayRef<FuncOp> kernels) {
  return groupsOf(kernels, [](int64_t elements) {
    return elements % kLargeChunk == 0 ? kLargeChunk : kLeastChunk;
  });
}

}  // namespace partita::kernels
