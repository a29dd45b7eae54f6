// Counts the collectives of divided models and compares them with the numbers
// known in the field.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <tuple>

#include "compiler/autodiff/gradient.h"
#include "compiler/driver/compilation.h"
#include "compiler/driver/import_model.h"
#include "compiler/partition/collective_report.h"
#include "compiler/partition/local_form.h"
#include "compiler/partition/passes.h"
#include "dialects/dist/dialect.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tests/compiler/simplify/evaluate.h"
#include "tests/e2e/divisions.h"

namespace partita::partition {
namespace {

class CountsTest : public testing::Test {
 protected:
  CountsTest() : context_(registry(), mlir::MLIRContext::Threading::DISABLED) {}

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry = simplify::testRegistry();
    registry.insert<dist::DistDialect>();
    registerLocalForms(registry);
    autodiff::registerGradients(registry);
    return registry;
  }

  static plan::Plan planOf(const std::string& mesh, const std::string& shard) {
    plan::Plan plan;
    auto parsed = plan::ParseMeshOption(mesh);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    plan.mesh = *parsed;
    auto entries = plan::ParseShardOption(shard, plan.mesh);
    EXPECT_TRUE(entries.ok()) << entries.status();
    plan.shard = *entries;
    return plan;
  }

  std::vector<CollectiveUse> collectives(
      mlir::ModuleOp module, const plan::Plan& plan,
      const driver::TrainOptions* train = nullptr, bool buckets = true) {
    driver::Compilation compilation(module,
                                    driver::optionsToJudge(plan, train));
    EXPECT_TRUE(succeeded(compilation.runTo(driver::Milestone::kPartitioned)));
    mlir::PassManager passes(&context_);
    if (train && buckets) passes.addPass(createMergeCollectivesPass());
    EXPECT_TRUE(succeeded(passes.run(module)));
    auto uses = listCollectives(module);
    EXPECT_TRUE(succeeded(uses));
    return succeeded(uses) ? *uses : std::vector<CollectiveUse>();
  }

  // Number of collectives by kind; a layer counts once per call.
  std::map<std::string, int64_t> count(const std::string& model,
                                       const std::string& mesh,
                                       const std::string& shard) {
    driver::ImportOptions options;
    options.dims["batch"] = 4;
    if (e2e::TakesText(model)) options.dims["seq"] = 8;
    auto module = driver::importModel(
        "tests/data/onnx-tiny/" + model + "/model_eval.onnx", options,
        &context_);
    EXPECT_TRUE(module);
    std::map<std::string, int64_t> counts;
    for (const CollectiveUse& use : collectives(*module, planOf(mesh, shard)))
      counts[use.kind] += use.times;
    return counts;
  }

  // Collectives of a training step by function ("main all_reduce"), without
  // scalars. @h_forward and @h_backward are one layer's functions, which run
  // twice.
  std::map<std::string, int64_t> countStep(
      const std::string& mesh, const std::string& shard, int zero = 0,
      int64_t microbatches = 1, const char* optimizer = "adamw",
      plan::Precision precision = plan::Precision::kF32) {
    driver::ImportOptions options;
    options.dims["batch"] = 4 * microbatches;
    options.dims["seq"] = 16;
    auto module = driver::importModel(
        "tests/data/onnx-tiny/gpt2/model_train.onnx", options, &context_);
    EXPECT_TRUE(module);
    driver::TrainOptions train;
    train.optimizer = optimizer;
    plan::Plan plan = planOf(mesh, shard);
    plan.zero = zero;
    plan.precision = precision;
    plan.microbatches = train.microbatches = microbatches;
    collectives(*module, plan, &train);
    return countWritten(*module);
  }

  // Collectives of a divided module as written, without counting calls.
  static std::map<std::string, int64_t> countWritten(mlir::ModuleOp module) {
    std::map<std::string, int64_t> counts;
    module->walk([&](mlir::Operation* op) {
      const llvm::StringRef kind = op->getName().getStringRef();
      if (!kind.starts_with("dist.") || op->getNumOperands() != 1 ||
          llvm::isa<dist::AllSliceOp>(op) ||
          mlir::cast<mlir::RankedTensorType>(op->getResult(0).getType())
                  .getRank() == 0)
        return;
      ++counts[op->getParentOfType<mlir::func::FuncOp>().getName().str() + " " +
               kind.drop_front(5).str()];
    });
    return counts;
  }

  // Collectives of a training step without buckets, by kind and bytes.
  std::map<std::pair<std::string, int64_t>, int64_t> countBytes(
      const std::string& shard, int zero, int64_t microbatches = 1,
      std::optional<plan::Gather> gather = std::nullopt) {
    driver::ImportOptions options;
    options.dims["batch"] = 4;
    options.dims["seq"] = 16;
    auto module = driver::importModel(
        "tests/data/onnx-tiny/gpt2/model_train.onnx", options, &context_);
    EXPECT_TRUE(module);
    driver::TrainOptions train;
    train.optimizer = "adamw";
    plan::Plan plan = planOf("d=2", shard);
    plan.zero = zero;
    plan.microbatches = train.microbatches = microbatches;
    plan.gather = gather;
    std::map<std::pair<std::string, int64_t>, int64_t> counts;
    for (const CollectiveUse& use :
         collectives(*module, plan, &train, /*buckets=*/false))
      counts[{use.kind, use.bytes}] += use.times;
    return counts;
  }

  std::vector<CollectiveUse> collectivesOf(const std::string& text,
                                           const std::string& mesh,
                                           const std::string& shard) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
    EXPECT_TRUE(module);
    return collectives(*module, planOf(mesh, shard));
  }

  mlir::MLIRContext context_;
};

using Counts = std::map<std::string, int64_t>;

// gpt2 has 2 layers, gpt2_4l has 4.
TEST_F(CountsTest, TensorParallelLayersReduceTwice) {
  EXPECT_EQ(count("gpt2", "t=2", "M=t,N=t"), (Counts{{"all_reduce", 4}}));
  EXPECT_EQ(count("gpt2_4l", "t=4", "M=t,N=t"), (Counts{{"all_reduce", 8}}));
  EXPECT_EQ(count("vit", "t=2", "M=t,N=t"), (Counts{{"all_reduce", 4}}));
}

TEST_F(CountsTest, SequenceParallelLayersGatherAndScatterTwice) {
  EXPECT_EQ(count("gpt2", "t=2", "M=t,N=t;L=t"),
            (Counts{{"all_gather", 4}, {"reduce_scatter", 4}}));
  EXPECT_EQ(count("gpt2_4l", "t=4", "M=t,N=t;L=t"),
            (Counts{{"all_gather", 8}, {"reduce_scatter", 8}}));
}

TEST_F(CountsTest, BatchesNeedNothing) {
  for (const char* model : {"gpt2", "bert_mlm", "vit"})
    EXPECT_EQ(count(model, "d=2", "B=d"), Counts()) << model;
}

// Forward and backward of a layer: four all-reduces under M, N. With L, four
// all-gathers and four reduce-scatters, plus two gathers because inputs of
// products are not kept gathered. Biases and norms are reduced in one bucket.
TEST_F(CountsTest, TrainedTensorParallelLayersReduceFourTimes) {
  EXPECT_EQ(
      countStep("t=2", "M=t,N=t"),
      (Counts{{"h_forward all_reduce", 2}, {"h_backward all_reduce", 2}}));
  EXPECT_EQ(countStep("t=2", "M=t,N=t;L=t"),
            (Counts{{"h_forward all_gather", 2},
                    {"h_forward reduce_scatter", 2},
                    {"h_backward all_gather", 4},
                    {"h_backward reduce_scatter", 2},
                    {"main all_reduce", 1}}));
}

// One bucket for all gradients, and with ZeRO one for all parameters.
TEST_F(CountsTest, GradientsAreReducedInBuckets) {
  EXPECT_EQ(countStep("d=2", "B=d"), (Counts{{"main all_reduce", 1}}));
  EXPECT_EQ(countStep("d=2", "B=d", 1),
            (Counts{{"main reduce_scatter", 1}, {"main all_gather", 1}}));
  EXPECT_EQ(countStep("d=2", "B=d", 3)["main reduce_scatter"], 1);
}

// D1, from Alpa's tests/shard_parallel/test_mlp.py with data parallelism: six
// layers of width 32 with biases, Adam, a batch of 256 on four devices.
std::string mlpOfSixLayers() {
  const char* matrix = "tensor<32x32xf32>";
  const char* stream = "tensor<256x32xf32>";
  std::string arguments =
      std::string("%x: ") + stream + " {nn.kind = \"input\", nn.name = \"x\"}";
  std::string body, value = "%x";
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    const auto parameter = [&](const char* name, const std::string& type) {
      arguments += std::string(", %") + name + n + ": " + type +
                   " {nn.kind = \"parameter\", nn.name = \"" + n + "." + name +
                   "\", nn.source = #nn.init<\"normal\", 1.0 : f64, 1>}";
    };
    parameter("weight", matrix);
    parameter("bias", "tensor<32xf32>");
    body += "%d" + n + " = nn.dot_general " + value + ", %weight" + n +
            " contract = [1] x [0] : " + stream + ", " + matrix + " -> " +
            stream + "\n%e" + n + " = nn.broadcast %bias" + n +
            " dims = [1] : tensor<32xf32> -> " + stream + "\n%s" + n +
            " = arith.addf %d" + n + ", %e" + n + " : " + stream + "\n%h" + n +
            " = math.tanh %s" + n + " : " + stream + "\n";
    value = "%h" + n;
  }
  return "func.func @main(" + arguments + ") -> " + stream + " {\n" + body +
         "return " + value + " : " + stream + "\n}";
}

// ZeRO-3 gathers each layer's parameters at their uses; Alpa gathers all of
// them at once. The bytes are the same, in two passes.
TEST_F(CountsTest, D1MlpsReduceTheirGradientsAtOnce) {
  int64_t gathered = 0;
  const auto countIn = [&](int zero) {
    auto module =
        mlir::parseSourceString<mlir::ModuleOp>(mlpOfSixLayers(), &context_);
    EXPECT_TRUE(module);
    driver::TrainOptions train;
    train.optimizer = "adam";
    train.loss = "mse";
    plan::Plan plan = planOf("d=4", "B=d");
    plan.zero = zero;
    gathered = 0;
    for (const CollectiveUse& use : collectives(*module, plan, &train))
      if (use.kind == "all_gather") gathered += use.bytes * use.times;
    return countWritten(*module);
  };
  EXPECT_EQ(countIn(0), (Counts{{"main all_reduce", 1}}));
  EXPECT_EQ(countIn(2),
            (Counts{{"main reduce_scatter", 1}, {"main all_gather", 1}}));
  const int64_t all = 6 * (32 * 32 + 32) * 4 * 3 / 4;  // three of four shards
  EXPECT_EQ(gathered, all);
  Counts three = countIn(3);
  EXPECT_EQ(three["main reduce_scatter"], 1);
  for (const auto& [what, times] : three)
    EXPECT_EQ(what.find("all_reduce"), std::string::npos) << what;
  EXPECT_GT(gathered, all);
  EXPECT_LE(gathered, 2 * all);
}

// Gradients are reduced once per step for any number of microbatches; with ZeRO
// 2 and 3, once per microbatch. Parameters are gathered once per step; with
// ZeRO 3, at their uses, in both directions, once per microbatch.
TEST_F(CountsTest, GradientsOfMicrobatchesAreReducedInBuckets) {
  EXPECT_EQ(countStep("d=2", "B=d", 0, 4), (Counts{{"main all_reduce", 1}}));
  EXPECT_EQ(countStep("d=2", "B=d", 1, 4),
            (Counts{{"main reduce_scatter", 1}, {"main all_gather", 1}}));
  EXPECT_EQ(countStep("d=2", "B=d", 2, 4),
            (Counts{{"main reduce_scatter", 4}, {"main all_gather", 1}}));
  Counts once = countStep("d=2", "B=d", 3, 1),
         often = countStep("d=2", "B=d", 3, 4);
  EXPECT_EQ(often["main reduce_scatter"], 4);
  once.erase("main reduce_scatter"), often.erase("main reduce_scatter");
  EXPECT_EQ(often, once);  // in functions that run once per microbatch
}

// Gradients stored in 16 bits are accumulated in 32 bits before they are
// reduced. This includes sums computed in 32 bits and rounded, such as
// gradients of norms and of the embedding. The looked-up positions are fewer
// than their table, so they are reduced before the scatter.
TEST_F(CountsTest, NarrowGradientsAreReducedOnce) {
  for (const int64_t microbatches : {1, 4})
    EXPECT_EQ(
        countStep("d=2", "B=d", 0, microbatches, "adamw",
                  plan::Precision::kBF16),
        (Counts{{"main all_reduce", 1}, {"segment_backward all_reduce", 1}}))
        << microbatches;
}

// Dividing the embedding over the devices of the batch equals ZeRO-3 for every
// parameter that has an embedding dimension: each weight and norm is gathered,
// and its gradient scattered, equally often. The differences are parameters
// without it: the biases of q, k, v (64 bytes, 3 x 64 reduced) and of the MLP
// (256), in two layers, forward only, as their sums are saved; and looked-up
// positions, which are partial sums of rows (2048) or parts of columns (1024).
TEST_F(CountsTest, DividedEmbeddingsAreZeroThree) {
  auto differences = countBytes("B=d", 3);
  for (const auto& [what, times] : countBytes("B=d;E=d", 0))
    differences[what] -= times;
  for (auto it = differences.begin(); it != differences.end();)
    it = it->second == 0 ? differences.erase(it) : std::next(it);
  EXPECT_EQ(differences, (std::map<std::pair<std::string, int64_t>, int64_t>{
                             {{"all_gather", 64}, 2 * 3},
                             {{"all_gather", 256}, 2},
                             {{"reduce_scatter", 3 * 64}, 2},
                             {{"reduce_scatter", 256}, 2},
                             {{"all_reduce", 2 * 3 * 64}, -2},
                             {{"all_reduce", 2 * 256}, -2},
                             {{"all_reduce", 2048}, 1},
                             {{"all_gather", 1024}, -1},
                         }));
}

// With parameters held for the step, each parameter is gathered once per step,
// except for looked-up positions, which are sums of parts. Gradients are
// scattered as before.
TEST_F(CountsTest, GatheredParametersAreHeldForTheStep) {
  for (const int64_t microbatches : {1, 2}) {
    auto used = countBytes("B=d", 3, microbatches),
         held = countBytes("B=d", 3, microbatches,
                           plan::Gather{1, plan::Hold::kStep});
    int64_t gathers = 0, bytes = 0;
    for (auto* counts : {&used, &held})
      for (auto it = counts->begin(); it != counts->end();) {
        const bool gather = it->first.first == "all_gather";
        if (gather && counts == &held) {
          gathers += it->second;
          bytes += it->second * it->first.second;
        }
        it = gather ? counts->erase(it) : std::next(it);
      }
    EXPECT_EQ(held, used);
    // wte, two of ln_f, and per layer 6 matrices, 6 biases (q, k and v
    // separately) and 4 of the norms.
    EXPECT_EQ(gathers, 3 + 2 * (6 + 6 + 4)) << microbatches;
    EXPECT_EQ(bytes,
              4 * (128 * 32 + 2 * 32 + 2 * (12 * 32 * 32 + 13 * 32)) / 2);
  }
}

// For each parameter, one bit per element goes each way, in whole words, with a
// scale per chunk. Only the loss is sent besides. Microbatches do not change
// this, nor do LAMB's ratios, which every device computes locally. The sums of
// 0/1 Adam are exchanged in the same way, and in local steps not at all.
TEST_F(CountsTest, MomentaAreExchangedInOneBit) {
  for (const auto& [given, n, microbatches] :
       {std::tuple<const char*, int64_t, int64_t>("1bit-adam", 2, 1),
        {"1bit-adam", 4, 1},
        {"1bit-adam", 2, 2},
        {"1bit-lamb", 2, 1},
        {"1bit-lamb", 4, 1},
        {"1bit-lamb", 2, 2},
        {"0/1-adam", 2, 1},
        {"0/1-adam", 4, 1},
        {"0/1-adam", 2, 2},
        {"local", 2, 1},
        {"local", 4, 2}}) {
    const bool is_local = given == std::string("local");
    const std::string optimizer = is_local ? "0/1-adam" : given;
    driver::ImportOptions options;
    options.dims["batch"] = 8;
    options.dims["seq"] = 16;
    auto module = driver::importModel(
        "tests/data/onnx-tiny/gpt2/model_train.onnx", options, &context_);
    ASSERT_TRUE(module);
    int64_t expected = 0, elements = 0;
    auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
      if (!kind || kind.getValue() != "parameter") continue;
      const int64_t size =
          mlir::cast<mlir::RankedTensorType>(main.getArgumentTypes()[i])
              .getNumElements();
      elements += size;
      const int64_t words = (size + 32 * n - 1) / (32 * n);
      if (!is_local) expected += 2 * (n - 1) * (words * 4 + 4);
    }
    driver::TrainOptions train;
    train.optimizer = optimizer;
    if (driver::isZeroOne(train))
      train.zero_one_step = is_local ? "local" : "exchange";
    else
      train.onebit_warmup = 10;
    plan::Plan plan = planOf("d=" + std::to_string(n), "B=d");
    plan.microbatches = train.microbatches = microbatches;
    int64_t moved = 0;
    for (const CollectiveUse& use : collectives(*module, plan, &train))
      if (use.kind == "all_reduce")
        EXPECT_LE(use.bytes, 12) << use.why;  // the loss, a count
      else
        moved += use.bytes * use.times;
    EXPECT_EQ(moved, expected) << given << ", " << n << " devices";
    // An all-reduce in f32 would move 2 (n - 1) / n of all elements. Parameters
    // are small here, so padding to whole words matters.
    EXPECT_LT(static_cast<double>(moved) * n / (2.0 * (n - 1)),
              1.25 / 32 * 4 * static_cast<double>(elements));
  }
}

// Rows and columns have different dimensions, but gradients stay in one
// division.
TEST_F(CountsTest, AdafactorMovesNoMatrixTwice) {
  for (int zero : {1, 3}) {
    const Counts counts = countStep("d=2", "B=d", zero, 1, "adafactor");
    for (const auto& [what, times] : counts)
      EXPECT_EQ(what.find("all_to_all"), std::string::npos)
          << what << ": " << times << ", zero " << zero;
    // One reduce-scatter for the gradients of all matrices. Only rows and
    // columns are reduced whole.
    EXPECT_EQ(counts.count("main reduce_scatter"), 1u) << zero;
    EXPECT_EQ(counts.count("main all_reduce"), 0u) << zero;
  }
}

// Kernel 3, stride 1: one row each way. An 8 x 6 image with 4 channels in f32:
// a row of one image is 96 bytes, and the middle devices have two neighbours.
TEST_F(CountsTest, ConvolutionExchangesOneRowEachWay) {
  const char* text = R"(
    func.func @main(%x: tensor<1x4x8x6xf32> {nn.kind = "input", nn.name = "x"},
                    %w: tensor<4x4x3x3xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"normal", 1.0 : f64, 1>}) -> tensor<1x4x8x6xf32> {
      %y = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [1, 1] high = [1, 1] groups = 1 : tensor<1x4x8x6xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x6xf32>
      return %y : tensor<1x4x8x6xf32>
    })";
  auto two = collectivesOf(text, "h=2", "H=h");
  ASSERT_EQ(two.size(), 1u);
  EXPECT_EQ(two[0].kind, "exchange");
  EXPECT_EQ(two[0].bytes, 4 * 6 * 4);
  auto four = collectivesOf(text, "h=4", "H=h");
  ASSERT_EQ(four.size(), 1u);
  EXPECT_EQ(four[0].bytes, 2 * 4 * 6 * 4);
}

// Rows stay on their device: 7 rows over 2 devices are 4 + 3, flattened 28 +
// 21.
TEST_F(CountsTest, FlatteningAnImageMovesNothing) {
  for (const char* size : {"8", "7"}) {
    const std::string s = size;
    const std::string flat = std::to_string(std::stoi(s) * std::stoi(s));
    const std::string image = "tensor<2x4x" + s + "x" + s + "xf32>";
    const std::string text =
        "func.func @main(%x: " + image +
        " {nn.kind = \"input\", nn.name = \"x\"}, %w: tensor<4x4x1x1xf32> "
        "{nn.kind = \"parameter\", nn.name = \"w\", nn.source = "
        "#nn.init<\"normal\", 1.0 : f64, 1>}) -> tensor<2x" +
        flat +
        "x4xf32> {\n"
        "%y = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] low = [0, 0] "
        "high = [0, 0] groups = 1 : " +
        image + ", tensor<4x4x1x1xf32> -> " + image +
        "\n%f = nn.reshape %y : " + image + " -> tensor<2x4x" + flat +
        "xf32>\n%t = nn.transpose %f perm = [0, 2, 1] : tensor<2x4x" + flat +
        "xf32> -> tensor<2x" + flat + "x4xf32>\nreturn %t : tensor<2x" + flat +
        "x4xf32>\n}";
    EXPECT_TRUE(collectivesOf(text, "h=2", "H=h").empty()) << size;
  }
}

}  // namespace
}  // namespace partita::partition
