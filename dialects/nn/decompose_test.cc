// Interprets each composite and its decomposition on random inputs of several
// types and shapes, and compares the results.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "dialects/nn/interpreter_fixture.h"
#include "dialects/nn/philox.h"
#include "mlir/IR/Verifier.h"

namespace partita::nn {
namespace {

struct Tolerance {
  double absolute;
  double relative;
};

class DecomposeTest : public InterpreterFixture {
 protected:
  static std::vector<DecompositionOpInterface> compositesIn(
      mlir::ModuleOp module) {
    std::vector<DecompositionOpInterface> composites;
    module.walk([&](DecompositionOpInterface op) { composites.push_back(op); });
    return composites;
  }

  // Replaces every composite in the module with its decomposition.
  void decomposeAll(mlir::ModuleOp module) {
    std::vector<DecompositionOpInterface> composites = compositesIn(module);
    ASSERT_FALSE(composites.empty());
    // Decompositions may contain simpler composites.
    for (; !composites.empty(); composites = compositesIn(module)) {
      for (DecompositionOpInterface op : composites) {
        mlir::OpBuilder builder(op);
        auto results = op.decompose(builder);
        ASSERT_TRUE(mlir::succeeded(results));
        op->replaceAllUsesWith(*results);
        op->erase();
      }
      ASSERT_TRUE(mlir::succeeded(mlir::verify(module)));
    }
  }

  void expectAgreement(const std::string& text,
                       const std::vector<Tensor>& arguments,
                       Tolerance tolerance) {
    SCOPED_TRACE(text);
    auto module = parse(text);
    ASSERT_TRUE(module);
    const auto expected = interpret(functionNamed(*module, "f"), arguments);
    ASSERT_TRUE(mlir::succeeded(expected));
    decomposeAll(*module);
    const auto found = interpret(functionNamed(*module, "f"), arguments);
    ASSERT_TRUE(mlir::succeeded(found));
    ASSERT_EQ(found->size(), expected->size());
    for (size_t i = 0; i < found->size(); ++i) {
      expectClose((*found)[i], (*expected)[i], tolerance.absolute,
                  tolerance.relative);
    }
  }

  // Substitutes each float type for T in `text` and uses random arguments.
  // bf16 results may differ by one unit in the last place if the f32 sum is
  // close to a tie.
  void expectAgreementForAllTypes(const std::string& text,
                                  Tolerance in_16_bits = {1e-5, 1.0 / 128}) {
    const std::pair<const char*, Tolerance> types[] = {
        {"f32", {1e-5, 1e-5}}, {"f64", {1e-12, 1e-12}}, {"bf16", in_16_bits}};
    for (const auto& [type, tolerance] : types) {
      const std::string typed =
          std::regex_replace(text, std::regex("T\\b"), type);
      auto module = parse(typed);
      ASSERT_TRUE(module);
      std::vector<Tensor> arguments =
          randomArguments(functionNamed(*module, "f"));
      expectAgreement(typed, arguments, tolerance);
    }
  }
};

TEST_F(DecomposeTest, Softmax) {
  for (const char* log : {"", "log "}) {
    for (const char* axis : {"0", "1", "2"}) {
      expectAgreementForAllTypes(
          std::string(
              "func.func @f(%x: tensor<3x4x5xT>) -> tensor<3x4x5xT> {\n") +
          "%y = nn.softmax " + log + "%x axis = " + axis +
          " : tensor<3x4x5xT>\nreturn %y : tensor<3x4x5xT>\n}");
    }
  }
}

TEST_F(DecomposeTest, SoftmaxOfMinusInfinities) {
  const double inf = std::numeric_limits<double>::infinity();
  expectAgreement(
      "func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
      "%y = nn.softmax %x axis = 1 : tensor<2x3xf32>\nreturn %y : "
      "tensor<2x3xf32>\n}",
      {tensor("tensor<2x3xf32>", {-inf, -inf, -inf, -inf, 1, 2})},
      {1e-6, 1e-6});
}

TEST_F(DecomposeTest, LayerNorm) {
  expectAgreementForAllTypes(R"(
    func.func @f(%x: tensor<2x3x8xT>, %g: tensor<8xT>, %b: tensor<8xT>, %h: tensor<3x8xT>)
        -> (tensor<2x3x8xT>, tensor<2x3x8xT>, tensor<2x3x8xT>, tensor<2x3x8xT>) {
      %0 = nn.layer_norm %x scale(%g : tensor<8xT>) bias(%b : tensor<8xT>) axis = 2 epsilon = 1.0e-5 : tensor<2x3x8xT>
      %1 = nn.layer_norm %x axis = 1 epsilon = 1.0e-3 : tensor<2x3x8xT>
      %2 = nn.layer_norm %x scale(%h : tensor<3x8xT>) axis = 1 epsilon = 1.0e-5 : tensor<2x3x8xT>
      %3 = nn.layer_norm %x bias(%b : tensor<8xT>) axis = 2 epsilon = 1.0e-5 : tensor<2x3x8xT>
      return %0, %1, %2, %3 : tensor<2x3x8xT>, tensor<2x3x8xT>, tensor<2x3x8xT>, tensor<2x3x8xT>
    })");
}

TEST_F(DecomposeTest, RmsNorm) {
  expectAgreementForAllTypes(R"(
    func.func @f(%x: tensor<2x3x8xT>, %g: tensor<8xT>) -> (tensor<2x3x8xT>, tensor<2x3x8xT>) {
      %0 = nn.rms_norm %x scale(%g : tensor<8xT>) axis = 2 epsilon = 1.0e-6 : tensor<2x3x8xT>
      %1 = nn.rms_norm %x axis = 0 epsilon = 1.0e-6 : tensor<2x3x8xT>
      return %0, %1 : tensor<2x3x8xT>, tensor<2x3x8xT>
    })");
}

TEST_F(DecomposeTest, BatchNorm) {
  expectAgreementForAllTypes(R"(
    func.func @f(%x: tensor<2x3x4x5xT>, %g: tensor<3xT>, %b: tensor<3xT>, %m: tensor<3xT>, %s: tensor<3xT>)
        -> (tensor<2x3x4x5xT>, tensor<2x3x4x5xT>, tensor<3xT>, tensor<3xT>, tensor<3xT>) {
      %v = arith.mulf %s, %s : tensor<3xT>
      %0 = nn.batch_norm %x, %g, %b, %m, %v feature = 1 epsilon = 1.0e-1
        : (tensor<2x3x4x5xT>, tensor<3xT>, tensor<3xT>, tensor<3xT>, tensor<3xT>) -> tensor<2x3x4x5xT>
      %1, %2, %3 = nn.batch_norm %x, %g, %b, %m, %v feature = 1 epsilon = 1.0e-5 training momentum = 2.0e-1 unbiased
        : (tensor<2x3x4x5xT>, tensor<3xT>, tensor<3xT>, tensor<3xT>, tensor<3xT>)
        -> (tensor<2x3x4x5xT>, tensor<3xT>, tensor<3xT>)
      %4, %5, %6 = nn.batch_norm %x, %g, %b, %m, %v feature = 1 epsilon = 1.0e-5 training
        : (tensor<2x3x4x5xT>, tensor<3xT>, tensor<3xT>, tensor<3xT>, tensor<3xT>)
        -> (tensor<2x3x4x5xT>, tensor<3xT>, tensor<3xT>)
      return %0, %1, %2, %3, %6 : tensor<2x3x4x5xT>, tensor<2x3x4x5xT>, tensor<3xT>, tensor<3xT>, tensor<3xT>
    })");
}

TEST_F(DecomposeTest, AttentionWithGroupedHeads) {
  expectAgreementForAllTypes(R"(
    func.func @f(%q: tensor<2x6x5x4xT>, %k: tensor<2x3x7x4xT>, %v: tensor<2x3x7x8xT>) -> tensor<2x6x5x8xT> {
      %0 = nn.attention %q, %k, %v scale = 5.0e-1
        : (tensor<2x6x5x4xT>, tensor<2x3x7x4xT>, tensor<2x3x7x8xT>) -> tensor<2x6x5x8xT>
      return %0 : tensor<2x6x5x8xT>
    })");
}

TEST_F(DecomposeTest, AttentionWithBiasMaskAndSoftcap) {
  // With offset -1 the first query sees no key.
  expectAgreementForAllTypes(R"(
    func.func @f(%q: tensor<2x2x5x4xT>, %k: tensor<2x2x5x4xT>, %v: tensor<2x2x5x4xT>, %b: tensor<1x2x1x5xT>)
        -> (tensor<2x2x5x4xT>, tensor<2x2x5x4xT>) {
      %0 = nn.attention %q, %k, %v, %b scale = 5.0e-1 causal_offset = -1 softcap = 2.0
        : (tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<1x2x1x5xT>) -> tensor<2x2x5x4xT>
      %1 = nn.attention %q, %k, %v scale = 5.0e-1 causal_offset = 2
        : (tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<2x2x5x4xT>) -> tensor<2x2x5x4xT>
      return %0, %1 : tensor<2x2x5x4xT>, tensor<2x2x5x4xT>
    })");
}

TEST_F(DecomposeTest, AttentionOfAQueryThatSeesNoKeyIsZero) {
  const std::vector<double> found = evaluate(
      "%r = nn.attention %a, %b, %c scale = 1.0 causal_offset = -1 : "
      "(tensor<1x1x2x1xf32>, tensor<1x1x2x1xf32>, tensor<1x1x2x1xf32>) -> "
      "tensor<1x1x2x1xf32>",
      "tensor<1x1x2x1xf32>",
      {tensor("tensor<1x1x2x1xf32>", {1, 2}),
       tensor("tensor<1x1x2x1xf32>", {3, 4}),
       tensor("tensor<1x1x2x1xf32>", {5, 6})});
  EXPECT_EQ(found, (std::vector<double>{0, 5}));
}

// The shift and the segments are constants, so that all kinds of masks hide
// some keys: query 0 of batch element 1 sees none.
constexpr char kMasks[] = R"(
      %s = arith.constant dense<1> : tensor<i64>
      %i = arith.constant dense<[[0, 0, 1, 1, 2], [7, 2, 2, 3, 3]]> : tensor<2x5xi32>
      %j = arith.constant dense<[[0, 0, 0, 1, 1, 2], [2, 2, 2, 3, 3, 3]]> : tensor<2x6xi32>
)";

TEST_F(DecomposeTest, AttentionWithWindowShiftAndSegments) {
  expectAgreementForAllTypes(std::string(R"(
    func.func @f(%q: tensor<2x4x5x4xT>, %k: tensor<2x2x6x4xT>, %v: tensor<2x2x6x3xT>)
        -> (tensor<2x4x5x3xT>, tensor<2x4x5x3xT>, tensor<2x4x5xf32>) {)") +
                             kMasks + R"(
      %0 = nn.attention %q, %k, %v scale = 5.0e-1 causal_offset = 1 window = 3
        : (tensor<2x4x5x4xT>, tensor<2x2x6x4xT>, tensor<2x2x6x3xT>) -> tensor<2x4x5x3xT>
      %1, %lse = nn.attention %q, %k, %v shift(%s) segments(%i, %j) scale = 5.0e-1 causal_offset = -1 window = 2
        : (tensor<2x4x5x4xT>, tensor<2x2x6x4xT>, tensor<2x2x6x3xT>, tensor<i64>, tensor<2x5xi32>, tensor<2x6xi32>)
        -> (tensor<2x4x5x3xT>, tensor<2x4x5xf32>)
      return %0, %1, %lse : tensor<2x4x5x3xT>, tensor<2x4x5x3xT>, tensor<2x4x5xf32>
    })");
}

TEST_F(DecomposeTest, AttentionGradWithWindowShiftSegmentsAndLse) {
  expectAgreementForAllTypes(std::string(R"(
    func.func @f(%q: tensor<2x4x5x4xT>, %k: tensor<2x2x6x4xT>, %v: tensor<2x2x6x3xT>, %g: tensor<2x4x5x3xT>)
        -> (tensor<2x4x5x4xT>, tensor<2x2x6x4xT>, tensor<2x2x6x3xT>) {)") +
                             kMasks + R"(
      %y, %lse = nn.attention %q, %k, %v shift(%s) segments(%i, %j) scale = 5.0e-1 causal_offset = 0 window = 3
        : (tensor<2x4x5x4xT>, tensor<2x2x6x4xT>, tensor<2x2x6x3xT>, tensor<i64>, tensor<2x5xi32>, tensor<2x6xi32>)
        -> (tensor<2x4x5x3xT>, tensor<2x4x5xf32>)
      %0, %1, %2 = nn.attention_grad %q, %k, %v, %y, %g shift(%s) segments(%i, %j) lse(%lse)
          scale = 5.0e-1 causal_offset = 0 window = 3
        : (tensor<2x4x5x4xT>, tensor<2x2x6x4xT>, tensor<2x2x6x3xT>, tensor<2x4x5x3xT>, tensor<2x4x5x3xT>,
           tensor<i64>, tensor<2x5xi32>, tensor<2x6xi32>, tensor<2x4x5xf32>)
        -> (tensor<2x4x5x4xT>, tensor<2x2x6x4xT>, tensor<2x2x6x3xT>)
      return %0, %1, %2 : tensor<2x4x5x4xT>, tensor<2x2x6x4xT>, tensor<2x2x6x3xT>
    })");
}

// The table has a row of heads and of positions beside those that are used.
TEST_F(DecomposeTest, AttentionWithSinksAndBlocks) {
  expectAgreementForAllTypes(R"(
    func.func @f(%q: tensor<2x4x5x4xT>, %k: tensor<2x2x6x4xT>, %v: tensor<2x2x6x3xT>, %g: tensor<2x4x5x3xT>)
        -> (tensor<2x4x5x3xT>, tensor<2x4x5x3xT>, tensor<2x4x5xf32>, tensor<2x4x5x4xT>, tensor<2x2x6x4xT>, tensor<2x2x6x3xT>) {
      %one = arith.constant dense<1> : tensor<i64>
      %0 = nn.attention %q, %k, %v scale = 5.0e-1 causal_offset = 1 window = 2 sinks = 2
        : (tensor<2x4x5x4xT>, tensor<2x2x6x4xT>, tensor<2x2x6x3xT>) -> tensor<2x4x5x3xT>
      %1, %lse = nn.attention %q, %k, %v shift(%one) first_head(%one) scale = 5.0e-1 causal_offset = 2
          blocks = dense<[[[1, 1, 1], [0, 0, 0]], [[1, 0, 1], [0, 1, 1]], [[1, 1, 0], [0, 0, 1]],
                          [[0, 0, 0], [1, 1, 1]], [[0, 1, 0], [1, 0, 1]]]> : tensor<5x2x3xi1> block_size = 2
        : (tensor<2x4x5x4xT>, tensor<2x2x6x4xT>, tensor<2x2x6x3xT>, tensor<i64>, tensor<i64>)
        -> (tensor<2x4x5x3xT>, tensor<2x4x5xf32>)
      %2, %3, %4 = nn.attention_grad %q, %k, %v, %1, %g shift(%one) lse(%lse) first_head(%one) scale = 5.0e-1
          causal_offset = 2
          blocks = dense<[[[1, 1, 1], [0, 0, 0]], [[1, 0, 1], [0, 1, 1]], [[1, 1, 0], [0, 0, 1]],
                          [[0, 0, 0], [1, 1, 1]], [[0, 1, 0], [1, 0, 1]]]> : tensor<5x2x3xi1> block_size = 2
        : (tensor<2x4x5x4xT>, tensor<2x2x6x4xT>, tensor<2x2x6x3xT>, tensor<2x4x5x3xT>, tensor<2x4x5x3xT>,
           tensor<i64>, tensor<2x4x5xf32>, tensor<i64>)
        -> (tensor<2x4x5x4xT>, tensor<2x2x6x4xT>, tensor<2x2x6x3xT>)
      return %0, %1, %lse, %2, %3, %4
        : tensor<2x4x5x3xT>, tensor<2x4x5x3xT>, tensor<2x4x5xf32>, tensor<2x4x5x4xT>, tensor<2x2x6x4xT>, tensor<2x2x6x3xT>
    })");
}

TEST_F(DecomposeTest, AttentionGradWithGroupedHeads) {
  expectAgreementForAllTypes(R"(
    func.func @f(%q: tensor<2x6x5x4xT>, %k: tensor<2x3x7x4xT>, %v: tensor<2x3x7x8xT>, %g: tensor<2x6x5x8xT>)
        -> (tensor<2x6x5x4xT>, tensor<2x3x7x4xT>, tensor<2x3x7x8xT>) {
      %y = nn.attention %q, %k, %v scale = 5.0e-1
        : (tensor<2x6x5x4xT>, tensor<2x3x7x4xT>, tensor<2x3x7x8xT>) -> tensor<2x6x5x8xT>
      %0, %1, %2 = nn.attention_grad %q, %k, %v, %y, %g scale = 5.0e-1
        : (tensor<2x6x5x4xT>, tensor<2x3x7x4xT>, tensor<2x3x7x8xT>, tensor<2x6x5x8xT>, tensor<2x6x5x8xT>)
        -> (tensor<2x6x5x4xT>, tensor<2x3x7x4xT>, tensor<2x3x7x8xT>)
      return %0, %1, %2 : tensor<2x6x5x4xT>, tensor<2x3x7x4xT>, tensor<2x3x7x8xT>
    })");
}

TEST_F(DecomposeTest, AttentionGradWithBiasMaskAndSoftcap) {
  // With offset -1 the first query sees no key.
  expectAgreementForAllTypes(R"(
    func.func @f(%q: tensor<2x2x5x4xT>, %k: tensor<2x2x5x4xT>, %v: tensor<2x2x5x4xT>, %b: tensor<1x2x1x5xT>,
                 %y: tensor<2x2x5x4xT>, %g: tensor<2x2x5x4xT>)
        -> (tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<1x2x1x5xT>, tensor<2x2x5x4xT>) {
      %0, %1, %2, %3 = nn.attention_grad %q, %k, %v, %y, %g, %b scale = 5.0e-1 causal_offset = -1 softcap = 2.0
        : (tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<1x2x1x5xT>)
        -> (tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<1x2x1x5xT>)
      %4, %5, %6 = nn.attention_grad %q, %k, %v, %y, %g, %b scale = 5.0e-1
        : (tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<1x2x1x5xT>)
        -> (tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<2x2x5x4xT>)
      return %0, %1, %2, %3, %5
          : tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<2x2x5x4xT>, tensor<1x2x1x5xT>, tensor<2x2x5x4xT>
    })");
}

TEST_F(DecomposeTest, ReduceWindowGrad) {
  for (const char* kind : {"sum", "max", "min"}) {
    const bool needs_input = std::string(kind) != "sum";
    const auto line = [&](const char* name, const char* grad,
                          const char* attributes, const char* grad_type,
                          const char* type) {
      const std::string x = std::string("tensor<") + type + "xT>";
      return std::string(name) + " = nn.reduce_window_grad " + kind + " " +
             grad + (needs_input ? ", %x" + std::string(name + 1) : "") + " " +
             attributes + " : (tensor<" + grad_type + "xT>" +
             (needs_input ? ", " + x : "") + ") -> " + x + "\n";
    };
    expectAgreementForAllTypes(
        "func.func @f(%x0: tensor<2x9x7xT>, %g0: tensor<2x4x7xT>, %x1: "
        "tensor<11xT>, %g1: tensor<3xT>, %x2: tensor<4xT>, %g2: tensor<10xT>, "
        "%x3: tensor<2x6x4xT>, %g3: tensor<2x3x2xT>) -> (tensor<2x9x7xT>, "
        "tensor<11xT>, tensor<4xT>, tensor<2x6x4xT>) {\n" +
        line("%0", "%g0",
             "window = [1, 3, 2] strides = [1, 2, 1] dilations = [1, 2, 1] low "
             "= [0, 2, 1] high = [0, 1, 0]",
             "2x4x7", "2x9x7") +
        line("%1", "%g1",
             "window = [2] strides = [4] dilations = [1] low = [1] high = [0]",
             "3", "11") +
        line("%2", "%g2",
             "window = [3] strides = [1] dilations = [1] low = [4] high = [4]",
             "10", "4") +
        line("%3", "%g3",
             "window = [1, 2, 2] strides = [1, 2, 2] dilations = [1, 1, 1] low "
             "= [0, 0, 0] high = [0, 0, 0]",
             "2x3x2", "2x6x4") +
        "return %0, %1, %2, %3 : tensor<2x9x7xT>, tensor<11xT>, tensor<4xT>, "
        "tensor<2x6x4xT>\n}");
  }
}

TEST_F(DecomposeTest, ReduceWindowGradOfInfinitiesAndNans) {
  const double inf = std::numeric_limits<double>::infinity(), nan = NAN;
  for (const char* kind : {"max", "min"}) {
    expectAgreement(
        std::string("func.func @f(%x: tensor<8xf32>, %g: tensor<5xf32>) -> "
                    "tensor<8xf32> {\n%r = nn.reduce_window_grad ") +
            kind +
            " %g, %x window = [3] strides = [2] dilations = [1] low = [2] high "
            "= [1] : (tensor<5xf32>, tensor<8xf32>) -> tensor<8xf32>\nreturn "
            "%r : tensor<8xf32>\n}",
        {tensor("tensor<8xf32>", {-inf, inf, inf, -inf, nan, 1, nan, 3}),
         tensor("tensor<5xf32>", {1, 2, 4, 8, 16})},
        {0, 0});
  }
}

TEST_F(DecomposeTest, CrossEntropy) {
  for (const char* type : {"f32", "f64", "bf16"}) {
    const std::string text = std::regex_replace(std::string(R"(
      func.func @f(%z: tensor<2x5x9xT>, %t: tensor<2x5xi32>) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
        %0 = nn.cross_entropy %z, %t ignore_index = 3 : tensor<2x5x9xT>, tensor<2x5xi32> -> tensor<2x5xf32>
        %1 = nn.cross_entropy %z, %t label_smoothing = 2.0e-1 : tensor<2x5x9xT>, tensor<2x5xi32> -> tensor<2x5xf32>
        return %0, %1 : tensor<2x5xf32>, tensor<2x5xf32>
      })"),
                                                std::regex("T\\b"), type);
    // Targets from -100 (ignored by default) to 9 (out of range, clamped to 8).
    const Tensor targets =
        tensor("tensor<2x5xi32>", {0, 3, 8, 9, -100, 1, 2, 3, -1, 7});
    expectAgreement(
        text,
        {random(typeFrom(std::string("tensor<2x5x9x") + type + ">")), targets},
        {1e-5, 1e-5});
  }
}

TEST_F(DecomposeTest, Dequantize) {
  for (const char* type : {"f32", "f64", "bf16"}) {
    const std::string text = std::regex_replace(std::string(R"(
      func.func @f(%q: tensor<2x3x4xi8>, %s: tensor<2x3xT>, %z: tensor<2x3xi8>) -> (tensor<2x3x8xT>, tensor<2x3x8xT>) {
        %0 = nn.dequantize %q scale(%s) : (tensor<2x3x4xi8>, tensor<2x3xT>) -> tensor<2x3x8xT>
        %1 = nn.dequantize %q scale(%s) zero(%z) : (tensor<2x3x4xi8>, tensor<2x3xT>, tensor<2x3xi8>) -> tensor<2x3x8xT>
        return %0, %1 : tensor<2x3x8xT>, tensor<2x3x8xT>
      })"),
                                                std::regex("T\\b"), type);
    std::vector<double> bytes;
    for (int i = 0; i < 24; ++i) bytes.push_back(i * 37 % 256 - 128);
    expectAgreement(text,
                    {tensor("tensor<2x3x4xi8>", bytes),
                     random(typeFrom(std::string("tensor<2x3x") + type + ">")),
                     tensor("tensor<2x3xi8>", {0, 15, 8, 7, 1, 3})},
                    {1e-6, 1e-6});
  }
}

TEST_F(DecomposeTest, GroupedProducts) {
  expectAgreementForAllTypes(R"(
    func.func @f(%x: tensor<9x3xT>, %i: tensor<9xi64>, %j: tensor<9xi8>, %w: tensor<8x4x3xT>, %v: tensor<6x3x4xT>,
                 %g: tensor<9x4xT>) -> (tensor<9x4xT>, tensor<9x4xT>, tensor<7x4x3xT>) {
      %0 = nn.grouped_dot %x[%i], %w : tensor<9x3xT>, tensor<9xi64>, tensor<8x4x3xT> -> tensor<9x4xT>
      %1 = nn.grouped_dot %x[%j], %v transposed : tensor<9x3xT>, tensor<9xi8>, tensor<6x3x4xT> -> tensor<9x4xT>
      %2 = nn.grouped_dot_weight_grad %x[%i], %g : tensor<9x3xT>, tensor<9xi64>, tensor<9x4xT> -> tensor<7x4x3xT>
      return %0, %1, %2 : tensor<9x4xT>, tensor<9x4xT>, tensor<7x4x3xT>
    })");
}

// An intermediate value close to a tie in bf16 may be rounded differently.
constexpr Tolerance kOfSeveralRoundings = {0.1, 1.0 / 32};

TEST_F(DecomposeTest, Experts) {
  for (const char* activation : {"relu", "gelu", "gelu_tanh", "silu"}) {
    const std::string text = R"(
      func.func @f(%x: tensor<2x3x4xT>, %i: tensor<2x3x2xi64>, %p: tensor<2x3x2xT>, %g: tensor<7x5x4xT>, %u: tensor<7x5x4xT>,
                   %d: tensor<7x3x5xT>, %b: tensor<7x5xT>, %c: tensor<7x5xT>, %e: tensor<7x3xT>)
          -> (tensor<2x3x3xT>, tensor<2x3x3xT>) {
        %0 = nn.experts %x[%i], %p gate(%g : tensor<7x5x4xT>) up(%u : tensor<7x5x4xT>) down(%d : tensor<7x3x5xT>)
          gate_bias(%b : tensor<7x5xT>) up_bias(%c : tensor<7x5xT>) down_bias(%e : tensor<7x3xT>) activation = ACT
          : tensor<2x3x4xT>, tensor<2x3x2xi64>, tensor<2x3x2xT> -> tensor<2x3x3xT>
        %1 = nn.experts %x[%i], %p up(%u : tensor<7x5x4xT>) down(%d : tensor<7x3x5xT>) activation = ACT
          : tensor<2x3x4xT>, tensor<2x3x2xi64>, tensor<2x3x2xT> -> tensor<2x3x3xT>
        return %0, %1 : tensor<2x3x3xT>, tensor<2x3x3xT>
      })";
    expectAgreementForAllTypes(
        std::regex_replace(text, std::regex("ACT"), activation),
        kOfSeveralRoundings);
  }
}

TEST_F(DecomposeTest, ExpertsGrad) {
  for (const char* activation : {"relu", "gelu", "gelu_tanh", "silu"}) {
    const std::string text = R"(
      func.func @f(%x: tensor<2x3x4xT>, %i: tensor<2x3x2xi64>, %p: tensor<2x3x2xT>, %y: tensor<2x3x3xT>,
                   %g: tensor<7x5x4xT>, %u: tensor<7x5x4xT>, %d: tensor<7x3x5xT>, %b: tensor<7x5xT>, %c: tensor<7x5xT>,
                   %e: tensor<7x3xT>)
          -> (tensor<2x3x4xT>, tensor<2x3x2xT>, tensor<7x5x4xT>, tensor<7x5x4xT>, tensor<7x3x5xT>, tensor<7x5xT>,
              tensor<7x5xT>, tensor<7x3xT>, tensor<2x3x4xT>, tensor<2x3x2xT>, tensor<7x5x4xT>, tensor<7x3x5xT>) {
        %0:8 = nn.experts_grad %x[%i], %p, %y gate(%g : tensor<7x5x4xT>) up(%u : tensor<7x5x4xT>) down(%d : tensor<7x3x5xT>)
          gate_bias(%b : tensor<7x5xT>) up_bias(%c : tensor<7x5xT>) down_bias(%e : tensor<7x3xT>) activation = ACT
          : tensor<2x3x4xT>, tensor<2x3x2xi64>, tensor<2x3x2xT>, tensor<2x3x3xT> -> tensor<2x3x4xT>, tensor<2x3x2xT>,
            tensor<7x5x4xT>, tensor<7x5x4xT>, tensor<7x3x5xT>, tensor<7x5xT>, tensor<7x5xT>, tensor<7x3xT>
        %1:4 = nn.experts_grad %x[%i], %p, %y up(%u : tensor<7x5x4xT>) down(%d : tensor<7x3x5xT>) activation = ACT
          : tensor<2x3x4xT>, tensor<2x3x2xi64>, tensor<2x3x2xT>, tensor<2x3x3xT> -> tensor<2x3x4xT>, tensor<2x3x2xT>,
            tensor<7x5x4xT>, tensor<7x3x5xT>
        return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5, %0#6, %0#7, %1#0, %1#1, %1#2, %1#3
          : tensor<2x3x4xT>, tensor<2x3x2xT>, tensor<7x5x4xT>, tensor<7x5x4xT>, tensor<7x3x5xT>, tensor<7x5xT>,
            tensor<7x5xT>, tensor<7x3xT>, tensor<2x3x4xT>, tensor<2x3x2xT>, tensor<7x5x4xT>, tensor<7x3x5xT>
      })";
    expectAgreementForAllTypes(
        std::regex_replace(text, std::regex("ACT"), activation),
        kOfSeveralRoundings);
  }
}

// If a composite's rule defers a factor to the decomposition (kDecompose), the
// decomposition must be divisible there: none of its operations has a kWhole
// factor, except for the length of a gather's index vectors.
TEST_F(DecomposeTest, DecompositionsCanBeDividedAlongEveryFactor) {
  auto module = parse(R"(
    func.func @f(%x: tensor<2x3x4x5xf32>, %s: tensor<4x5xf32>, %v: tensor<3xf32>, %q: tensor<2x6x4x5xbf16>,
                 %k: tensor<2x3x7x5xbf16>, %b: tensor<1x6x4x7xbf16>, %t: tensor<2x3x4xi64>,
                 %seed: tensor<i64>, %i: tensor<2x4xi64>, %j: tensor<2x7xi64>) {
      %0 = nn.softmax %x axis = 2 : tensor<2x3x4x5xf32>
      %1 = nn.layer_norm %x scale(%s : tensor<4x5xf32>) bias(%s : tensor<4x5xf32>) axis = 2 epsilon = 1.0e-5 : tensor<2x3x4x5xf32>
      %2 = nn.rms_norm %x scale(%s : tensor<4x5xf32>) axis = 2 epsilon = 1.0e-5 : tensor<2x3x4x5xf32>
      %3:3 = nn.batch_norm %x, %v, %v, %v, %v feature = 1 epsilon = 1.0e-5 training unbiased
          : (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
          -> (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>)
      %4 = nn.attention %q, %k, %k, %b scale = 1.0 causal_offset = 0 softcap = 2.0
          : (tensor<2x6x4x5xbf16>, tensor<2x3x7x5xbf16>, tensor<2x3x7x5xbf16>, tensor<1x6x4x7xbf16>) -> tensor<2x6x4x5xbf16>
      %7:4 = nn.attention_grad %q, %k, %k, %q, %q, %b scale = 1.0 causal_offset = 0 softcap = 2.0
          : (tensor<2x6x4x5xbf16>, tensor<2x3x7x5xbf16>, tensor<2x3x7x5xbf16>, tensor<2x6x4x5xbf16>,
             tensor<2x6x4x5xbf16>, tensor<1x6x4x7xbf16>)
          -> (tensor<2x6x4x5xbf16>, tensor<2x3x7x5xbf16>, tensor<2x3x7x5xbf16>, tensor<1x6x4x7xbf16>)
      %8, %9 = nn.attention %q, %k, %k shift(%seed) segments(%i, %j) scale = 1.0 causal_offset = 0 window = 2
          : (tensor<2x6x4x5xbf16>, tensor<2x3x7x5xbf16>, tensor<2x3x7x5xbf16>, tensor<i64>, tensor<2x4xi64>, tensor<2x7xi64>)
          -> (tensor<2x6x4x5xbf16>, tensor<2x6x4xf32>)
      %5 = nn.cross_entropy %x, %t label_smoothing = 0.1 : tensor<2x3x4x5xf32>, tensor<2x3x4xi64> -> tensor<2x3x4xf32>
      %6 = nn.random normal %seed : tensor<i64> -> tensor<3x4xf32>
      return
    })");
  ASSERT_TRUE(module);
  decomposeAll(*module);
  mlir::func::FuncOp function = functionNamed(*module, "f");
  for (mlir::Operation& op : function.front().without_terminator()) {
    const auto rule = shardingRuleOf(&op);
    ASSERT_TRUE(rule) << op.getName().getStringRef().str();
    for (const Factor& factor : rule->factors) {
      const bool is_vector = mlir::isa<GatherOp>(op) && factor.size == 1;
      EXPECT_TRUE(factor.kind == FactorKind::kCarried ||
                  factor.kind == FactorKind::kReduced || is_vector)
          << op.getName().getStringRef().str() << " " << ToString(*rule);
    }
  }
}

TEST_F(DecomposeTest, UniformRandomNumbersAgreeBitForBit) {
  const std::string text =
      "func.func @f(%s: tensor<i64>) -> tensor<3x50xf32> {\n"
      "%r = nn.random uniform %s : tensor<i64> -> tensor<3x50xf32>\nreturn %r "
      ": tensor<3x50xf32>\n}";
  for (int64_t seed :
       {int64_t{0}, int64_t{42}, int64_t{-1}, int64_t{0x123456789ABCDEF}}) {
    Tensor argument(typeFrom("tensor<i64>"));
    argument.setInt(0, seed);
    expectAgreement(text, {argument}, {0, 0});
  }
}

TEST_F(DecomposeTest, NormalRandomNumbers) {
  expectAgreement(
      "func.func @f(%s: tensor<i64>) -> tensor<3x50xf32> {\n"
      "%r = nn.random normal %s : tensor<i64> -> tensor<3x50xf32>\nreturn %r : "
      "tensor<3x50xf32>\n}",
      {tensor("tensor<i64>", {7})}, {2e-6, 1e-5});
}

TEST_F(DecomposeTest, RandomNumbersHaveTheirMoments) {
  for (const char* kind : {"uniform", "normal"}) {
    const std::vector<double> numbers =
        evaluate(std::string("%r = nn.random ") + kind +
                     " %a : tensor<i64> -> tensor<10000xf32>",
                 "tensor<10000xf32>", {tensor("tensor<i64>", {1})});
    double sum = 0, squares = 0;
    for (double number : numbers) sum += number, squares += number * number;
    const bool uniform = std::string(kind) == "uniform";
    EXPECT_NEAR(sum / 10000, uniform ? 0.5 : 0.0, 0.03) << kind;
    EXPECT_NEAR(squares / 10000, uniform ? 1.0 / 3 : 1.0, 0.04) << kind;
  }
}

// Known answers from the reference implementation by Philox's authors.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                     0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6,
                                     0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420,
                                     0x24126ea1}));
}

}  // namespace
}  // namespace partita::nn
