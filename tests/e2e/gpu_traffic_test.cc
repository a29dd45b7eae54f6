// Launches and memory traffic of a compiled training step for GPUs, per layer.
// Both are properties of the program, so no GPU is needed. The log has a table
// of all operations of a layer.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

#include "compiler/driver/compile.h"
#include "compiler/driver/import_model.h"
#include "runtime/program/artifact.h"
#include "runtime/program/labels.h"
#include "tests/e2e/compiled_model.h"

namespace partita::e2e {
namespace {

// Work of one run of a function, including its callees.
struct Traffic {
  int64_t kernels = 0, products = 0, copies = 0;
  // Operands and results of kernels and copies, without unread operands.
  int64_t bytes = 0;

  int64_t launches() const { return kernels + products + copies; }
};

int64_t BytesOf(const program::Instruction& instruction) {
  int64_t bytes = 0;
  for (const program::Buffer* buffer : *instruction.operands())
    bytes += buffer->bytes();
  if (const auto* launch = instruction.operation_as_Launch())
    bytes -= launch->unread_bytes();
  return bytes;
}

std::string DescriptionOf(const program::Program& program,
                          const program::Instruction& instruction) {
  if (const auto* launch = instruction.operation_as_Launch())
    return program::KernelLabel(program, *launch).str();
  const auto* gemm = instruction.operation_as_Gemm();
  if (gemm == nullptr)
    return program::EnumNameOperation(instruction.operation_type());
  std::string text = "product " + std::to_string(gemm->m()) + "x" +
                     std::to_string(gemm->n()) + "x" +
                     std::to_string(gemm->k());
  if (gemm->has_bias()) text += " bias";
  if (gemm->activation() != program::Activation::none)
    text += std::string(" ") + program::EnumNameActivation(gemm->activation());
  if (gemm->has_residual()) text += " residual";
  if (gemm->preactivation() == program::Preactivation::kept) text += " kept";
  if (gemm->preactivation() == program::Preactivation::given)
    text += " gradient";
  if (gemm->sums() != program::GemmSums::none) text += " sums";
  return text;
}

class TrafficOf {
 public:
  explicit TrafficOf(const program::Program& program) : program_(program) {}

  Traffic Of(int function) {
    const auto [found, is_new] = known_.try_emplace(function);
    if (!is_new) return found->second;
    Traffic sum;
    for (const auto* instruction :
         *program_.functions()->Get(static_cast<unsigned>(function))->body()) {
      if (const auto* call = instruction->operation_as_Call()) {
        const Traffic callee = Of(call->function());
        sum.kernels += callee.kernels;
        sum.products += callee.products;
        sum.copies += callee.copies;
        sum.bytes += callee.bytes;
        continue;
      }
      switch (instruction->operation_type()) {
        case program::Operation::Gemm:
        case program::Operation::Conv:
          ++sum.products;
          continue;
        case program::Operation::Launch:
          ++sum.kernels;
          break;
        default:
          ++sum.copies;
      }
      sum.bytes += BytesOf(*instruction);
    }
    return known_[function] = sum;
  }

  // Prints the operations of a function in order.
  void Print(int function) {
    const program::Function& body =
        *program_.functions()->Get(static_cast<unsigned>(function));
    std::printf("%s\n", body.name()->c_str());
    for (const auto* instruction : *body.body()) {
      if (const auto* call = instruction->operation_as_Call()) {
        std::printf("  call %d\n", call->function());
        continue;
      }
      const bool is_product = instruction->operation_as_Gemm() != nullptr;
      std::printf(
          "  %8.1f MB  %s\n",
          is_product ? 0 : static_cast<double>(BytesOf(*instruction)) / 1e6,
          DescriptionOf(program_, *instruction).c_str());
    }
    const Traffic all = Of(function);
    std::printf("  %8.1f MB in %lld kernels, %lld products, %lld copies\n",
                static_cast<double>(all.bytes) / 1e6,
                static_cast<long long>(all.kernels),
                static_cast<long long>(all.products),
                static_cast<long long>(all.copies));
  }

  // Functions whose name ends with `suffix` and that main calls `calls` times.
  std::vector<int> FunctionsWith(const std::string& suffix, int calls) {
    std::map<int, int> counts;
    const auto* entry = program_.entries()->Get(0);
    for (const auto* instruction :
         *program_.functions()
              ->Get(static_cast<unsigned>(entry->main()))
              ->body())
      if (const auto* call = instruction->operation_as_Call())
        ++counts[call->function()];
    std::vector<int> found;
    for (const auto& [function, count] : counts) {
      const std::string name = program_.functions()
                                   ->Get(static_cast<unsigned>(function))
                                   ->name()
                                   ->str();
      if (count == calls && name.size() > suffix.size() &&
          name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0)
        found.push_back(function);
    }
    return found;
  }

 private:
  const program::Program& program_;
  std::map<int, Traffic> known_;
};

constexpr int64_t kMB = 1000 * 1000;

// GPT-2 medium, batch 8, 1,024 tokens, bf16, AdamW, on one GPU. The limits are
// what the compiler writes now: lower them with every improvement.
TEST(GpuTrafficTest, Gpt2MediumTrains) {
  CompilerContext context;
  driver::ImportOptions import;
  import.dims = {{"batch", 8}, {"seq", 1024}};
  import.training = true;
  auto module = driver::importModel("gpt2-medium", import, context.get());
  ASSERT_TRUE(module) << context.errors;
  driver::CompileOptions options;
  options.output = testing::TempDir() + "gpt2-medium.partita";
  options.target = "cuda:sm_90a";
  options.cubins.emplace();  // PTX only
  options.train.optimizer = "adamw";
  options.precision = plan::Precision::kBF16;
  ASSERT_TRUE(mlir::succeeded(driver::compileToFile(*module, options)))
      << context.errors;
  auto artifact = program::Artifact::Open(options.output);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  TrafficOf traffic(artifact->program());

  const std::vector<int> forward = traffic.FunctionsWith("_forward", 24),
                         backward = traffic.FunctionsWith("_backward", 24);
  const int main = artifact->program().entries()->Get(0)->main();
  traffic.Print(main);
  ASSERT_EQ(forward.size(), 1);
  ASSERT_EQ(backward.size(), 1);
  traffic.Print(forward[0]);
  traffic.Print(backward[0]);
  EXPECT_LE(traffic.Of(forward[0]).launches(), 7);
  EXPECT_LE(traffic.Of(forward[0]).bytes, 135 * kMB);
  EXPECT_LE(traffic.Of(backward[0]).launches(), 18);
  EXPECT_LE(traffic.Of(backward[0]).bytes, 592 * kMB);
  EXPECT_LE(traffic.Of(main).launches(), 631);
}

}  // namespace
}  // namespace partita::e2e
