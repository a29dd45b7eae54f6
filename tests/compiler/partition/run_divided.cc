// Scatters arguments by the shardings of @main, and assembles the results.
#include "tests/compiler/partition/run_divided.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/partition/spmd_interpreter.h"
#include "compiler/sharding/convert.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"

namespace partita::partition {

using mlir::RankedTensorType;
using mlir::func::FuncOp;

namespace {

RankedTensorType globalType(mlir::Attribute attr) {
  return mlir::cast<RankedTensorType>(
      mlir::cast<mlir::TypeAttr>(attr).getValue());
}

}  // namespace

std::vector<nn::Tensor> runDivided(mlir::ModuleOp module,
                                   const simplify::Inputs& inputs) {
  const core::Mesh mesh = *sharding::meshOf(module);
  auto main = module.lookupSymbol<FuncOp>("main");
  llvm::SmallVector<Everywhere> arguments;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto global = globalType(main.getArgAttr(i, dist::kGlobalTypeAttr));
    auto sharding = sharding::toCore(
        main.getArgAttrOfType<dist::ShardingAttr>(i, dist::kShardingAttr),
        mesh);
    arguments.push_back(scatterTensor(
        simplify::argumentOf(main, i, global, inputs), mesh, *sharding));
  }
  auto results = interpretEverywhere(main, mesh, arguments);
  if (failed(results)) {
    ADD_FAILURE() << "the divided program cannot be run";
    return {};
  }
  std::vector<nn::Tensor> whole;
  for (auto [i, result] : llvm::enumerate(*results)) {
    auto sharding = sharding::toCore(
        main.getResultAttrOfType<dist::ShardingAttr>(i, dist::kShardingAttr),
        mesh);
    whole.push_back(assembleTensor(
        result, mesh, globalType(main.getResultAttr(i, dist::kGlobalTypeAttr)),
        *sharding));
  }
  return whole;
}

void expectEqual(const std::vector<nn::Tensor>& actual,
                 const std::vector<nn::Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t result = 0; result < actual.size(); ++result) {
    const nn::Tensor &a = actual[result], &e = expected[result];
    ASSERT_TRUE(a.type() == e.type());
    double largest = 0, distance = 0;
    for (int64_t i = 0; i < a.size(); ++i) {
      ASSERT_FALSE(std::isnan(a.getFloat(i))) << "element " << i;
      largest = std::max(largest, std::abs(e.getFloat(i)));
      distance = std::max(distance, std::abs(a.getFloat(i) - e.getFloat(i)));
    }
    EXPECT_LE(distance, 1e-5 * largest) << "result " << result;
  }
}

}  // namespace partita::partition
