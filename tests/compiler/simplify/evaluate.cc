// Arguments from files, from @init or from a formula; comparison with a
// tolerance.
#include "tests/compiler/simplify/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/Extensions/AllExtensions.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::simplify {

using mlir::RankedTensorType;
using mlir::func::FuncOp;

mlir::DialectRegistry testRegistry() {
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::math::MathDialect, nn::NNDialect>();
  mlir::func::registerAllExtensions(registry);
  nn::registerExternalModels(registry);
  return registry;
}

nn::Tensor madeUp(RankedTensorType type, uint64_t seed) {
  nn::Tensor tensor(type);
  uint64_t state = seed * 2 + 1;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t random = state >> 33;
    if (tensor.isFloat()) {
      tensor.setFloat(i, 0.25 + static_cast<double>(random % 4096) / 4096);
    } else {
      tensor.setInt(i, random % (type.getElementTypeBitWidth() == 1 ? 2 : 3));
    }
  }
  return tensor;
}

namespace {

// The data of a tensor of this name and source.
nn::Tensor stored(mlir::Attribute source, const std::string& name,
                  RankedTensorType type) {
  auto file = mlir::dyn_cast_if_present<nn::FileAttr>(source);
  // The loader does conversions; any numbers are good enough here.
  if (!file || file.getStored() != type.getElementType())
    return madeUp(type, llvm::xxh3_64bits(name));
  auto buffer = llvm::MemoryBuffer::getFileSlice(
      file.getPath(), file.getBytes(), file.getOffset());
  if (!buffer) {
    ADD_FAILURE() << "cannot read " << file.getPath().str();
    return nn::Tensor(type);
  }
  mlir::FailureOr<nn::Tensor> tensor = nn::Tensor::fromBytes(
      type, llvm::ArrayRef<char>((*buffer)->getBufferStart(),
                                 (*buffer)->getBufferSize()));
  EXPECT_TRUE(succeeded(tensor)) << name;
  return succeeded(tensor) ? *tensor : nn::Tensor(type);
}

// The data of an argument with nn.source, or of its parts.
nn::Tensor stored(FuncOp function, unsigned argument, RankedTensorType type) {
  const auto given =
      function.getArgAttrOfType<mlir::StringAttr>(argument, nn::kNameAttr);
  const std::string name = given ? given.str() : std::to_string(argument);
  const mlir::Attribute source = function.getArgAttr(argument, nn::kSourceAttr);
  const auto parts = mlir::dyn_cast_if_present<mlir::ArrayAttr>(source);
  if (!parts) return stored(source, name, type);
  nn::Tensor whole(type);
  const auto [before, after] = llvm::StringRef(name).split('*');
  int64_t next = 0;
  for (auto [i, file] : llvm::enumerate(parts)) {
    const nn::Tensor part =
        stored(file, (before + llvm::Twine(i) + after).str(),
               type.clone(type.getShape().drop_front()));
    for (int64_t at = 0; at < part.size(); ++at)
      whole.copyFrom(next++, part, at);
  }
  return whole;
}

std::vector<nn::Tensor> interpreted(FuncOp function,
                                    llvm::ArrayRef<nn::Tensor> arguments) {
  auto results = nn::interpret(function, arguments);
  if (failed(results)) {
    ADD_FAILURE() << "@" << function.getName().str() << " cannot be run";
    return {};
  }
  return {results->begin(), results->end()};
}

}  // namespace

nn::Tensor argumentOf(FuncOp main, unsigned i, RankedTensorType type,
                      const Inputs& inputs) {
  if (main.getArgAttr(i, nn::kSourceAttr)) return stored(main, i, type);
  const auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
  return inputs(name ? name.str() : std::to_string(i), type);
}

std::vector<nn::Tensor> runMain(mlir::ModuleOp module, const Inputs& inputs) {
  std::vector<nn::Tensor> derived;
  if (auto init = module.lookupSymbol<FuncOp>("init")) {
    std::vector<nn::Tensor> arguments;
    for (unsigned i = 0; i < init.getNumArguments(); ++i)
      arguments.push_back(stored(
          init, i, mlir::cast<RankedTensorType>(init.getArgumentTypes()[i])));
    derived = interpreted(init, arguments);
  }
  auto main = module.lookupSymbol<FuncOp>("main");
  std::vector<nn::Tensor> arguments;
  size_t next = 0;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    const auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
    if (kind && kind.getValue() == "derived") {
      if (next == derived.size()) {
        ADD_FAILURE() << "more derived arguments than results of @init";
        return {};
      }
      arguments.push_back(derived[next++]);
    } else {
      arguments.push_back(argumentOf(
          main, i, mlir::cast<RankedTensorType>(main.getArgumentTypes()[i]),
          inputs));
    }
  }
  EXPECT_EQ(next, derived.size())
      << "results of @init that @main does not take";
  return interpreted(main, arguments);
}

std::vector<nn::Tensor> runMadeUp(FuncOp function) {
  std::vector<nn::Tensor> arguments;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    arguments.push_back(madeUp(mlir::cast<RankedTensorType>(type), i));
  }
  return interpreted(function, arguments);
}

void expectSame(const std::vector<nn::Tensor>& actual,
                const std::vector<nn::Tensor>& expected,
                const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t result = 0; result < actual.size(); ++result) {
    const nn::Tensor &a = actual[result], &e = expected[result];
    ASSERT_TRUE(a.type() == e.type()) << what;
    for (int64_t i = 0; i < a.size(); ++i) {
      if (!a.isFloat()) {
        ASSERT_EQ(a.getInt(i), e.getInt(i)) << what << ", element " << i;
      } else {
        const double tolerance = 1e-5 + 1e-4 * std::abs(e.getFloat(i));
        ASSERT_LE(std::abs(a.getFloat(i) - e.getFloat(i)), tolerance)
            << what << ", element " << i;
      }
    }
  }
}

}  // namespace partita::simplify
