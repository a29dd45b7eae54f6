// The emitter's elements: applies rules, reuses emitted elements, and accesses
// buffers.
#include "compiler/kernels/emit_elements.h"

#include <numeric>

#include "compiler/kernels/emit_float8.h"
#include "compiler/kernels/emit_team.h"
#include "compiler/kernels/lower_to_llvm.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace partita::kernels {

using namespace mlir;

Emitter::Emitter(func::FuncOp kernel, func::FuncOp body, int64_t lanes,
                 int64_t team)
    : kernel_(kernel),
      body_(body),
      builder_(kernel.getLoc(), kernel.getContext()),
      lanes_(lanes),
      team_(team) {
  int64_t largest = 0;
  auto measure = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      largest = std::max(largest, tensor.getNumElements());
  };
  kernel.walk(
      [&](Operation* op) { llvm::for_each(op->getResultTypes(), measure); });
  llvm::for_each(kernel.getArgumentTypes(), measure);
  lane_index_ = builder_.getIntegerType(largest < (int64_t{1} << 31) ? 32 : 64);
  builder_.setInsertionPointToStart(&body.getBody().front());
  if (team > 1) thread_ = teamThread(builder_, team);
  pushScope();
}

Emitter::Key Emitter::keyOf(Value tensor, ArrayRef<Index> index) {
  Key key = {reinterpret_cast<int64_t>(tensor.getAsOpaquePointer())};
  for (const Index& i : index) {
    key.push_back(i.offset());
    key.push_back(i.terms().size());
    for (const Term& term : i.terms())
      key.append({term.scale, reinterpret_cast<int64_t>(term.symbol),
                  term.divisor, term.modulus});
  }
  return key;
}

FailureOr<Lanes> Emitter::element(Value tensor, ArrayRef<Index> index) {
  return atDepth(depthOf(index), [&]() -> FailureOr<Lanes> {
    Key key = keyOf(tensor, index);
    auto found = scopes_.back().elements.find(key);
    if (found != scopes_.back().elements.end()) return found->second;
    FailureOr<Lanes> result = computeElement(tensor, index);
    if (succeeded(result)) scopes_.back().elements[key] = *result;
    return result;
  });
}

FailureOr<Lanes> Emitter::computeElement(Value tensor, ArrayRef<Index> index) {
  for (Scope& scope : scopes_) {
    auto found = scope.cached.find(tensor.getAsOpaquePointer());
    if (found == scope.cached.end()) continue;
    for (const Cached& cached : found->second) {
      Index position = cached.position;
      bool matches = true;
      for (auto [i, base, stride] :
           llvm::zip_equal(index, cached.index, cached.strides)) {
        if (stride < 0)
          matches &= i == base;
        else
          position = position + i * stride;
      }
      if (matches) return load(cached.buffer, position);
    }
  }
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    auto type = cast<RankedTensorType>(tensor.getType());
    return load(bufferOf(argument),
                linearize(index, rowMajorStrides(type.getShape())));
  }
  Operation* op = tensor.getDefiningOp();
  auto rule = dyn_cast<KernelOpInterface>(op);
  if (!rule)
    return op->emitOpError(
        "expected an operation that code can be generated for; it has no "
        "kernel rule");
  return rule.emitElement(*this, cast<OpResult>(tensor).getResultNumber(),
                          index);
}

Buffer Emitter::bufferOf(BlockArgument argument) {
  return {body_.getArgument(argument.getArgNumber()),
          cast<RankedTensorType>(argument.getType()).getElementType()};
}

int Emitter::reductionsBehind(Value tensor) {
  Operation* op = tensor.getDefiningOp();
  if (!op) return 0;
  auto known = reductions_behind_.find(tensor);
  if (known != reductions_behind_.end()) return known->second;
  int most = 0;
  for (Value operand : op->getOperands())
    most = std::max(most, reductionsBehind(operand));
  most += kernelRole(op) == KernelRole::reduction;
  return reductions_behind_[tensor] = most;
}

LogicalResult Emitter::prefetch(Value tensor, ArrayRef<Index> index) {
  pushScope();
  prefetching_ = depth();
  // Loads without lanes are emitted as usual. A symbol of the new scope keeps
  // all others in that scope.
  const Symbol* lanes = laneSymbolOf(index);
  const Symbol* here = newSymbol(*lanes);
  IndexVector moved;
  for (const Index& i : index) moved.push_back(i.replaced(lanes, here));
  FailureOr<Lanes> loaded = element(tensor, moved);
  prefetching_ = 0;
  popScope();
  return loaded;
}

void Emitter::cache(Value tensor, Cached cached) {
  scopes_.back().cached[tensor.getAsOpaquePointer()].push_back(
      std::move(cached));
}

bool Emitter::isCached(Value tensor) const {
  return llvm::any_of(scopes_, [&](const Scope& scope) {
    return scope.cached.count(tensor.getAsOpaquePointer()) > 0;
  });
}

Buffer Emitter::scratch(Type element, int64_t count) {
  Type type = computeType(element);
  Type stored = type.isInteger(1) ? builder_.getI8Type() : type;
  int64_t bytes = count * stored.getIntOrFloatBitWidth() / 8;
  return {scratchView(reserveScratch(bytes), stored, count), type};
}

int64_t Emitter::reserveScratch(int64_t bytes) {
  return std::exchange(scratch_bytes_, scratch_bytes_ + (bytes + 63) / 64 * 64);
}

Value Emitter::scratchView(int64_t offset, Type stored, int64_t count) {
  OpBuilder::InsertionGuard guard(builder_);
  builder_.setInsertionPointToStart(&body_.getBody().front());
  return memref::ViewOp::create(builder_, MemRefType::get({count}, stored),
                                body_.getArgument(body_.getNumArguments() - 1),
                                indexConstant(offset), ValueRange());
}

Value Emitter::addMap(TensorMap map) {
  // Behind the arguments, the results and earlier maps; other memory follows.
  const unsigned at = kernel_.getNumArguments() + kernel_.getNumResults() +
                      static_cast<unsigned>(maps_.size());
  maps_.push_back(std::move(map));
  const LogicalResult inserted = body_.insertArgument(
      at, MemRefType::get({kTensorMapBytes}, builder_.getI8Type()), {},
      builder_.getLoc());
  assert(succeeded(inserted) && "the function has a body");
  (void)inserted;
  auto bytes = body_->getAttrOfType<DenseI64ArrayAttr>(kBuffersAttr);
  SmallVector<int64_t> all(bytes.asArrayRef());
  all.insert(all.begin() + at, kTensorMapBytes);
  body_->setAttr(kBuffersAttr, builder_.getDenseI64ArrayAttr(all));
  return body_.getArgument(at);
}

Buffer Emitter::constantArray(DenseElementsAttr elements) {
  OpBuilder::InsertionGuard guard(builder_);
  Type element = elements.getElementType();
  if (element.isInteger(1)) {
    SmallVector<int8_t> bytes(elements.getValues<bool>());
    elements = DenseElementsAttr::get(
        RankedTensorType::get({elements.getNumElements()},
                              builder_.getI8Type()),
        ArrayRef<int8_t>(bytes));
  }
  if (isFloat8(element)) elements = elements.bitcast(builder_.getI8Type());
  elements = elements.reshape(RankedTensorType::get({elements.getNumElements()},
                                                    elements.getElementType()));
  auto type =
      MemRefType::get(elements.getType().getShape(), elements.getElementType());
  std::string name =
      (body_.getName() + "_constant_" + Twine(constants_++)).str();
  builder_.setInsertionPoint(body_);
  memref::GlobalOp::create(builder_, name, builder_.getStringAttr("private"),
                           type, elements, /*constant=*/true,
                           builder_.getI64IntegerAttr(64));
  builder_.setInsertionPointToStart(&body_.getBody().front());
  return {memref::GetGlobalOp::create(builder_, type, name), element};
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Emitter::digit(Value number, const Term& term) {
  Type type = number.getType();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        builder_,
        isa<VectorType>(type)
            ? TypedAttr(DenseElementsAttr::get(
                  cast<VectorType>(type),
                  builder_.getIntegerAttr(getElementTypeOrSelf(type), value)))
            : TypedAttr(builder_.getIntegerAttr(type, value)));
  };
  if (term.divisor != 1)
    number =
        builder_.createOrFold<arith::DivUIOp>(number, constant(term.divisor));
  if (term.modulus != 0)
    number =
        builder_.createOrFold<arith::RemUIOp>(number, constant(term.modulus));
  if (term.scale != 1)
    number = builder_.createOrFold<arith::MulIOp>(number, constant(term.scale));
  return number;
}

Value Emitter::laneNumbers(const Symbol* symbol) {
  if (symbol->irregular) return symbol->value;
  Value base = arith::IndexCastOp::create(builder_, lane_index_, symbol->value);
  auto type = VectorType::get({symbol->lanes}, lane_index_);
  SmallVector<Attribute> steps;
  for (int64_t i = 0; i < symbol->lanes; ++i)
    steps.push_back(builder_.getIntegerAttr(lane_index_, i));
  Value step =
      arith::ConstantOp::create(builder_, DenseElementsAttr::get(type, steps));
  return arith::AddIOp::create(
      builder_, vector::BroadcastOp::create(builder_, type, base), step);
}

Emitter::Address Emitter::address(const Index& position) {
  for (Recording* recording : active_) recording->accesses.push_back(position);
  Address result;
  result.mask = maskOf(position);
  result.base = indexConstant(position.offset());
  auto addBase = [&](Value value) {
    result.base = builder_.createOrFold<arith::AddIOp>(result.base, value);
  };
  for (const Term& term : position.terms()) {
    const Symbol* symbol = term.symbol;
    if (symbol->lanes == 0) {
      addBase(digit(symbol->value, term));
      continue;
    }
    result.lanes = symbol->lanes;
    bool same_block = term.modulus == 0 || term.modulus % symbol->lanes == 0;
    if (!symbol->irregular && term.divisor == 1 && same_block) {
      addBase(digit(symbol->value, term));
      result.stride += term.scale;
    } else if (!symbol->irregular && term.divisor % symbol->lanes == 0) {
      addBase(digit(symbol->value, term));
    } else {
      Value offsets = digit(laneNumbers(symbol), term);
      result.offsets =
          result.offsets
              ? Value(arith::AddIOp::create(builder_, result.offsets, offsets))
              : offsets;
    }
  }
  if (result.stride != 0 && (result.offsets || result.stride != 1)) {
    Symbol zero;
    zero.value = indexConstant(0);
    zero.lanes = result.lanes;
    zero.extent = result.lanes;
    Value offsets = digit(laneNumbers(&zero), {result.stride, &zero, 1, 0});
    result.offsets =
        result.offsets
            ? Value(arith::AddIOp::create(builder_, result.offsets, offsets))
            : offsets;
    result.stride = 0;
  }
  return result;
}

IntegerAttr Emitter::alignment(const Index& position, VectorType type) {
  if (team_ == 1) return {};
  // Loops over lanes advance by whole vectors.
  int64_t elements = std::gcd(position.offset(), type.getNumElements());
  for (const Term& term : position.terms()) {
    bool in_vectors = term.symbol->lanes != 0 && term.divisor == 1;
    elements = std::gcd(
        elements, in_vectors ? term.scale * term.symbol->lanes : term.scale);
  }
  int64_t bytes = elements * type.getElementTypeBitWidth() / 8;
  if (elements <= 1 || (bytes & (bytes - 1)) != 0) return {};
  return builder_.getI64IntegerAttr(std::min<int64_t>(bytes, 16));
}

Lanes Emitter::load(const Buffer& buffer, const Index& position) {
  Address at = address(position);
  Type stored = cast<MemRefType>(buffer.memref.getType()).getElementType();
  if (!at.offsets && at.stride == 0)
    return {toCompute(memref::LoadOp::create(builder_, buffer.memref, at.base),
                      buffer.element),
            0};
  int64_t lanes = at.lanes;
  if (prefetching_ != 0 && depth() >= prefetching_) {
    memref::PrefetchOp::create(builder_, buffer.memref, ValueRange(at.base),
                               builder_.getBoolAttr(false),
                               builder_.getI32IntegerAttr(3),
                               builder_.getBoolAttr(true));
    return {constant(computeType(buffer.element), 0, lanes), lanes};
  }
  auto type = VectorType::get({lanes}, stored);
  Value value, mask = at.mask;
  if (!at.offsets && !mask) {
    auto load = vector::LoadOp::create(builder_, type, buffer.memref, at.base);
    if (IntegerAttr aligned = alignment(position, type))
      load.setAlignmentAttr(aligned);
    value = load;
  } else {
    Value zero =
        arith::ConstantOp::create(builder_, builder_.getZeroAttr(type));
    if (!at.offsets) {
      value = vector::MaskedLoadOp::create(builder_, type, buffer.memref,
                                           at.base, mask, zero);
    } else {
      if (!mask) mask = constant(builder_.getI1Type(), 1, lanes);
      value =
          vector::GatherOp::create(builder_, type, buffer.memref,
                                   ValueRange(at.base), at.offsets, mask, zero);
    }
  }
  return {toCompute(value, buffer.element), lanes};
}

void Emitter::store(const Buffer& buffer, const Index& position, Lanes value) {
  Address at = address(position);
  if (!at.offsets && at.stride == 0) {
    // A loop over one element has one lane that exists.
    Value element = value.value;
    if (isa<VectorType>(element.getType()))
      element = vector::ExtractOp::create(builder_, element, int64_t{0});
    memref::StoreOp::create(builder_, fromCompute(element, buffer.element),
                            buffer.memref, at.base);
    return;
  }
  int64_t lanes = at.lanes;
  Value stored = fromCompute(splat(value, lanes), buffer.element);
  Value mask = at.mask;
  if (!at.offsets && !mask) {
    auto store =
        vector::StoreOp::create(builder_, stored, buffer.memref, at.base);
    if (IntegerAttr aligned =
            alignment(position, cast<VectorType>(stored.getType())))
      store.setAlignmentAttr(aligned);
  } else if (!at.offsets) {
    vector::MaskedStoreOp::create(builder_, buffer.memref, at.base, mask,
                                  stored);
  } else {
    if (!mask) mask = constant(builder_.getI1Type(), 1, lanes);
    vector::ScatterOp::create(builder_, TypeRange(), buffer.memref,
                              ValueRange(at.base), at.offsets, mask, stored,
                              IntegerAttr());
  }
}

}  // namespace partita::kernels
