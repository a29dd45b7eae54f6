// Gradients of data movement, contractions and reductions against central
// differences, on random shapes and attributes.
#include <algorithm>
#include <numeric>

#include "compiler/autodiff/gradient_fixture.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/verify.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::autodiff {
namespace {

using llvm::ArrayRef;
using Sizes = std::vector<int64_t>;

constexpr unsigned kCases = 30;

std::string typeText(const Sizes& shape, const std::string& element = "f64") {
  std::string text = "tensor<";
  for (int64_t size : shape) text += std::to_string(size) + "x";
  return text + element + ">";
}

// Formats as "name = [1, 2] ".
std::string entry(const std::string& name, const Sizes& values) {
  return name + " = " + nn::listToString(values) + " ";
}

// One operation with one result.
Case caseOf(const std::string& operation,
            const std::vector<std::string>& arguments,
            const std::string& result) {
  std::string types;
  for (const std::string& type : arguments)
    types += (types.empty() ? "" : ", ") + type;
  return {arguments,
          {result},
          "%r = " + operation + ": " + types + " -> " + result};
}

class GradientsShapesTest : public GradientFixture {
 protected:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator_);
  }
  Sizes pickMany(int64_t count, int64_t low, int64_t high) {
    Sizes sizes(count);
    for (int64_t& size : sizes) size = pick(low, high);
    return sizes;
  }
  Sizes shuffled(int64_t count) {
    Sizes order(count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), generator_);
    return order;
  }

  // Checks random cases of one kind.
  template <typename Make>
  void check(Make make) {
    for (unsigned seed = 0; seed < kCases && !HasFatalFailure(); ++seed) {
      generator_.seed(seed);
      checkCase(make(), seed);
    }
  }

  Case dotGeneral();
  Case slice();
  Case pad(const std::string& mode);
  Case gatherOrScatter(const std::string& kind);
};

// Batch, contracted and free dimensions in any order on both sides.
Case GradientsShapesTest::dotGeneral() {
  const int64_t batches = pick(0, 2), contracted = pick(0, 2),
                lhs_free = pick(0, 2), rhs_free = pick(0, 2);
  const Sizes batch = pickMany(batches, 1, 3),
              contract = pickMany(contracted, 1, 3);
  Sizes result = batch;
  struct Side {
    Sizes shape, batch, contract;
  };
  const auto side = [&](int64_t free) {
    const int64_t rank = batches + contracted + free;
    Side side = {Sizes(rank), {}, {}};
    const Sizes order = shuffled(rank);
    for (int64_t i = 0; i < rank; ++i) {
      if (i < batches) {
        side.batch.push_back(order[i]);
        side.shape[order[i]] = batch[i];
      } else if (i < batches + contracted) {
        side.contract.push_back(order[i]);
        side.shape[order[i]] = contract[i - batches];
      } else {
        side.shape[order[i]] = pick(1, 3);
      }
    }
    for (int64_t dim = 0; dim < rank; ++dim) {
      if (!llvm::is_contained(side.batch, dim) &&
          !llvm::is_contained(side.contract, dim))
        result.push_back(side.shape[dim]);
    }
    return side;
  };
  const Side lhs = side(lhs_free), rhs = side(rhs_free);
  return caseOf("nn.dot_general %a, %b batch = " + nn::listToString(lhs.batch) +
                    " x " + nn::listToString(rhs.batch) +
                    " contract = " + nn::listToString(lhs.contract) + " x " +
                    nn::listToString(rhs.contract) + " ",
                {typeText(lhs.shape), typeText(rhs.shape)}, typeText(result));
}

Case GradientsShapesTest::slice() {
  const Sizes input = pickMany(pick(1, 3), 1, 7);
  Sizes starts, strides, result;
  for (int64_t size : input) {
    const int64_t stride = pick(1, 3), count = pick(1, (size - 1) / stride + 1),
                  length = (count - 1) * stride + 1,
                  first = pick(0, size - length);
    const bool turned = pick(0, 1);
    starts.push_back(turned ? first + length - 1 : first);
    strides.push_back(turned ? -stride : stride);
    result.push_back(count);
  }
  return caseOf(
      "nn.slice %a " + entry("starts", starts) + entry("strides", strides),
      {typeText(input)}, typeText(result));
}

Case GradientsShapesTest::pad(const std::string& mode) {
  const Sizes input = pickMany(pick(1, 3), 1, 4);
  Sizes low, high, result;
  for (int64_t size : input) {
    const int64_t most = mode == "reflect" ? size - 1 : 2 * size + 1;
    low.push_back(pick(0, most)), high.push_back(pick(0, most));
    result.push_back(low.back() + size + high.back());
  }
  return caseOf("nn.pad %a, %b " + entry("low", low) + entry("high", high) +
                    "mode = " + mode + " ",
                {typeText(input), "tensor<f64>"}, typeText(result));
}

// Indices are from 0 to 9 and often out of range.
Case GradientsShapesTest::gatherOrScatter(const std::string& kind) {
  const int64_t batch_dims = pick(0, 1), others = pick(1, 3);
  const Sizes input = pickMany(batch_dims + others, 1, 6);
  Sizes axes = shuffled(others);
  axes.resize(pick(1, others));
  for (int64_t& axis : axes) axis += batch_dims;
  Sizes indices(input.begin(), input.begin() + batch_dims);
  for (int64_t size : pickMany(pick(0, 2), 1, 3)) indices.push_back(size);
  Sizes taken = indices;
  for (size_t dim = batch_dims; dim < input.size(); ++dim) {
    if (!llvm::is_contained(axes, dim)) taken.push_back(input[dim]);
  }
  indices.push_back(axes.size());
  const std::string attributes =
      entry("axes", axes) + "batch_dims = " + std::to_string(batch_dims) + " ";
  if (kind == "gather") {
    return caseOf("nn.gather %a[%b] " + attributes,
                  {typeText(input), typeText(indices, "i64")}, typeText(taken));
  }
  return caseOf("nn.scatter %a[%b], %c " + attributes + "kind = " + kind + " ",
                {typeText(input), typeText(indices, "i64"), typeText(taken)},
                typeText(input));
}

TEST_F(GradientsShapesTest, DotGeneral) {
  check([&] { return dotGeneral(); });
}

// A matrix product with its weight in either layout, and attention's two
// products.
TEST_F(GradientsShapesTest, MatrixProductsNeedNoTransposes) {
  const std::vector<std::pair<std::string, std::string>> products = {
      {"tensor<2x3x4xf64>, tensor<4x5xf64> -> tensor<2x3x5xf64>",
       "contract = [2] x [0]"},
      {"tensor<2x3x4xf64>, tensor<5x4xf64> -> tensor<2x3x5xf64>",
       "contract = [2] x [1]"},
      {"tensor<2x6x3x4xf64>, tensor<2x6x5x4xf64> -> tensor<2x6x3x5xf64>",
       "batch = [0, 1] x [0, 1] contract = [3] x [3]"},
      {"tensor<2x6x3x5xf64>, tensor<2x6x5x4xf64> -> tensor<2x6x3x4xf64>",
       "batch = [0, 1] x [0, 1] contract = [3] x [2]"},
  };
  for (const auto& [types, dims] : products) {
    const size_t comma = types.find(", "), arrow = types.find(" -> ");
    auto module = moduleOf(
        {{types.substr(0, comma), types.substr(comma + 2, arrow - comma - 2)},
         {types.substr(arrow + 4)},
         "%r = nn.dot_general %a, %b " + dims + " : " + types});
    ASSERT_TRUE(module);
    mlir::Operation* op = &functionNamed(*module, "f").front().front();
    mlir::OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    const mlir::Value result = op->getResult(0);
    const bool wanted[] = {true, true};
    Gradient gradient(builder, op, result, wanted);
    ASSERT_TRUE(mlir::succeeded(
        mlir::cast<GradientOpInterface>(op).buildGradient(gradient)));
    for (mlir::Value operand : gradient.operands())
      EXPECT_TRUE(operand.getDefiningOp<nn::DotGeneralOp>()) << types;
  }
}

TEST_F(GradientsShapesTest, Slice) {
  check([&] { return slice(); });
}

TEST_F(GradientsShapesTest, Pad) {
  for (const char* mode : {"constant", "edge", "reflect", "wrap"})
    check([&] { return pad(mode); });
}

TEST_F(GradientsShapesTest, GatherAndScatter) {
  for (const char* kind : {"gather", "add", "set"})
    check([&] { return gatherOrScatter(kind); });
}

TEST_F(GradientsShapesTest, Transpose) {
  check([&] {
    const Sizes input = pickMany(pick(0, 4), 1, 3),
                perm = shuffled(input.size());
    Sizes result;
    for (int64_t dim : perm) result.push_back(input[dim]);
    return caseOf("nn.transpose %a " + entry("perm", perm), {typeText(input)},
                  typeText(result));
  });
}

// New dimensions, and repeated dimensions of size 1.
TEST_F(GradientsShapesTest, Broadcast) {
  check([&] {
    const Sizes result = pickMany(pick(0, 4), 1, 3);
    Sizes input, dims;
    for (size_t dim = 0; dim < result.size(); ++dim) {
      if (pick(0, 2) == 0) continue;
      dims.push_back(dim);
      input.push_back(pick(0, 1) ? 1 : result[dim]);
    }
    return caseOf("nn.broadcast %a " + entry("dims", dims), {typeText(input)},
                  typeText(result));
  });
}

TEST_F(GradientsShapesTest, Reduce) {
  for (const char* kind : {"sum", "prod", "max", "min"}) {
    check([&] {
      const Sizes input = pickMany(pick(0, 4), 1, 3);
      Sizes dims, result;
      for (size_t dim = 0; dim < input.size(); ++dim) {
        if (pick(0, 1)) {
          dims.push_back(dim);
        } else {
          result.push_back(input[dim]);
        }
      }
      return caseOf(
          std::string("nn.reduce ") + kind + " %a " + entry("dims", dims),
          {typeText(input)}, typeText(result));
    });
  }
}

}  // namespace
}  // namespace partita::autodiff
