// The golden models under every plan, compiled for sm_80 (inference in f32,
// training in bf16 with AdamW) and run on recorded GPUs that exchange by NCCL:
// no operation reads or writes memory that another, unordered one writes.
// Generated kernels access their operands and compute nothing.
#include <stdlib.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/driver/import_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/nccl.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/executor/rank_group.h"
#include "runtime/program/artifact.h"
#include "runtime/program/piece_table.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/division_plan.h"
#include "tests/e2e/divisions.h"
#include "tests/e2e/golden_training.h"

namespace partita::e2e {
namespace {

using cuda::recording::Reach;

constexpr char kLibrary[] = "runtime/cuda/recording/librecording.so";
// The second run of a step is captured, later ones are replayed.
constexpr int kRuns = 4;

// Lists the memory that one launch accesses. Its parameters are a pointer per
// operand, or a table of pointers, and last the scratch.
std::vector<Reach> ReachesOf(const program::Instruction& instruction) {
  const program::Launch& launch = *instruction.operation_as_Launch();
  const size_t operands = instruction.operands()->size(),
               outputs = static_cast<size_t>(instruction.outputs()),
               inputs = operands - outputs,
               pieces = launch.ranges() ? launch.ranges()->size() : 0;
  std::vector<Reach> reaches;
  const auto add = [&](size_t parameter, size_t offset, size_t operand) {
    reaches.push_back(
        {parameter, offset,
         static_cast<size_t>(instruction.operands()->Get(operand)->bytes()),
         operand >= inputs});
  };
  for (size_t i = 0; pieces == 0 && i < operands; ++i) add(i, 0, i);
  for (size_t piece = 0; piece < pieces; ++piece) {
    const size_t of_piece = operands / pieces, in = inputs / pieces,
                 ends = program::PiecesOfTable(of_piece);
    for (size_t i = 0; i < of_piece; ++i)
      add(0, 8 * (ends + piece * of_piece + i),
          i < in ? piece * in + i
                 : inputs + piece * (outputs / pieces) + (i - in));
  }
  if (launch.scratch_bytes() > 0) {
    const size_t maps = launch.maps() ? launch.maps()->size() : 0;
    reaches.push_back({(pieces == 0 ? operands : 1) + maps, 0,
                       static_cast<size_t>(launch.scratch_bytes()), true});
  }
  return reaches;
}

// The ends of all pieces, with which a table begins; nothing without a table.
std::string EndsOf(const program::Instruction& instruction) {
  const auto* ranges = instruction.operation_as_Launch()->ranges();
  if (ranges == nullptr || ranges->size() == 0) return "";
  const int64_t operands =
      static_cast<int64_t>(instruction.operands()->size() / ranges->size());
  std::string bytes;
  uint64_t end = 0;
  for (int64_t i = 0; i < program::PiecesOfTable(operands); ++i) {
    if (i < static_cast<int64_t>(ranges->size()))
      end += static_cast<uint64_t>(ranges->Get(static_cast<unsigned>(i)));
    bytes.append(reinterpret_cast<const char*>(&end), sizeof(end));
  }
  return bytes;
}

// A golden model, a division, and how it is trained, if at all.
struct Case {
  const char* model;
  Division division;
  bool trains = false;
  int zero = 0;
  int microbatches = 1;
};

constexpr Division kWhole = {"Whole", "", ""};

std::string NameOf(const Case& which) {
  return absl::StrCat(
      which.model, "_", which.division.name, which.trains ? "_training" : "",
      which.zero > 0 ? absl::StrCat("_zero_", which.zero) : "",
      which.microbatches > 1 ? absl::StrCat("_cut_", which.microbatches) : "");
}

std::vector<Case> Inference() {
  std::vector<Case> cases;
  for (const char* model : kModels) cases.push_back({model, kWhole});
  for (const auto& [model, division] : DividedCases())
    cases.push_back({model, division});
  return cases;
}

std::vector<Case> Training() {
  std::vector<Case> cases;
  for (const char* model : kModels) cases.push_back({model, kWhole, true});
  for (const auto& [model, division] : DividedCases())
    cases.push_back({model, division, true});
  for (const char* model : kModels)
    for (const int zero : {1, 2, 3}) {
      cases.push_back({model, {"B2", "d=2", "B=d"}, true, zero});
      cases.push_back(
          {model, {"B2MNV2", "d=2,t=2", "B=d;M=t,N=t,V=t"}, true, zero});
    }
  for (const char* model : {"gpt2_4l", "vit_3l"}) {
    cases.push_back({model, {"D2", "p=2", "D=p"}, true, 0, 4});
    cases.push_back({model, {"D2B2", "p=2,d=2", "D=p,B=d"}, true, 1, 2});
  }
  return cases;
}

class GpuRacesTest : public testing::TestWithParam<Case> {
 protected:
  GpuRacesTest() : recording_(kLibrary) {}
  ~GpuRacesTest() override {
    ranks_ = nullptr;
    EXPECT_EQ(recording_.UsedBytes(), 0u);
  }
  // Compiles the case and loads it on a recorded GPU per device.
  void Load(const Case& which) {
    ASSERT_TRUE(recording_.opened());
    const std::string folder =
        absl::StrCat("tests/data/onnx-tiny/", which.model, "/");
    auto golden = ReadGoldenTraining(folder);
    ASSERT_TRUE(golden.ok()) << golden.status();
    golden_ = *std::move(golden);
    if (!which.trains) {
      auto inputs = ReadTensors(folder + "io.safetensors", "in.");
      ASSERT_TRUE(inputs.ok()) << inputs.status();
      golden_.inputs = *std::move(inputs);
    }
    driver::ImportOptions import;
    for (const auto& [name, tensor] : golden_.inputs)
      import.input_shapes[name] = tensor.shape;
    CompilerContext context;
    auto module = driver::importModel(
        folder + (which.trains ? "model_train.onnx" : "model_eval.onnx"),
        import, context.get());
    ASSERT_TRUE(module) << context.errors;
    driver::CompileOptions options;
    const std::string path = testing::TempDir() + NameOf(which) + ".partita";
    options.output = path;
    options.target = "cuda:sm_80";
    options.cubins.emplace();  // PTX only
    if (which.division.mesh[0] != '\0') {
      auto plan = PlanOf(which.division);
      ASSERT_TRUE(plan.ok()) << plan.status();
      options.plan = *std::move(plan);
      options.plan->zero = which.zero;
      options.plan->microbatches = which.microbatches;
    }
    if (which.trains) {
      options.train.optimizer = "adamw";
      options.precision = plan::Precision::kBF16;
    }
    ASSERT_TRUE(mlir::succeeded(driver::compileToFile(*module, options)))
        << context.errors;
    DescribeKernels(path);
    executor::GroupOptions run;
    run.make_device = [](int) {
      return cuda::MakeCudaDevice({0, kLibrary, kLibrary, kLibrary});
    };
    run.make_communicator = [](int, comm::Communicator& base) {
      return cuda::MakeNcclCommunicator(base, {0, kLibrary, kLibrary, {}});
    };
    auto ranks = executor::RankGroup::LoadAll(path, run);
    ASSERT_TRUE(ranks.ok()) << ranks.status();
    ranks_ = *std::move(ranks);
  }

  void DescribeKernels(const std::string& path) {
    auto artifact = program::Artifact::Open(path);
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    const program::Program& program = artifact->program();
    // By kernel, and by what its first parameter begins with.
    std::map<std::pair<std::string, std::string>, std::vector<Reach>> launches;
    for (const auto* function : *program.functions())
      for (const auto* instruction : *function->body()) {
        const auto* launch = instruction->operation_as_Launch();
        if (!launch) continue;
        const std::string name =
            program.kernels()->Get(launch->kernel())->name()->str();
        const std::vector<Reach> reaches = ReachesOf(*instruction);
        std::vector<Reach>& known =
            launches.try_emplace({name, EndsOf(*instruction)}, reaches)
                .first->second;
        // Launches of one kernel may differ in what operands hold beyond what
        // it accesses: the smallest size is enough for it.
        ASSERT_EQ(known.size(), reaches.size()) << name;
        for (size_t i = 0; i < reaches.size(); ++i)
          known[i].bytes = std::min(known[i].bytes, reaches[i].bytes);
      }
    EXPECT_GT(launches.size(), 0u);
    recording_.ForgetDescriptions();
    for (const auto& [launch, reaches] : launches)
      recording_.Describe(launch.first, launch.second, reaches);
  }

  // Takes steps, some captured and replayed.
  void Run(bool trains) {
    for (int64_t step = 1; step <= kRuns; ++step) {
      std::map<std::string, HostTensor> inputs = golden_.inputs;
      if (trains) inputs = golden_.InputsOf(ranks_->inputs(), step);
      std::vector<executor::ConstTensor> arguments;
      auto next = inputs.begin();
      ASSERT_EQ(inputs.size(), ranks_->inputs().size());
      for (const executor::TensorSpec& spec : ranks_->inputs()) {
        // Exports may name inputs in their own way.
        auto found = inputs.find(spec.name);
        const HostTensor& tensor =
            (found == inputs.end() ? next : found)->second;
        ++next;
        arguments.push_back({tensor.dtype, tensor.shape, tensor.bytes.data()});
      }
      std::vector<HostTensor> outputs;
      for (const executor::TensorSpec& spec : ranks_->outputs())
        outputs.push_back(
            {spec.dtype, spec.shape, std::string(spec.bytes, '\0')});
      std::vector<executor::MutableTensor> results;
      for (HostTensor& output : outputs)
        results.push_back({output.dtype, output.shape, output.bytes.data()});
      const absl::Status status = ranks_->Run(arguments, results);
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  cuda::recording::Recording recording_;
  GoldenTraining golden_;
  std::unique_ptr<executor::RankGroup> ranks_;
};

TEST_P(GpuRacesTest, HasNone) {
  recording_.Watch();
  ASSERT_NO_FATAL_FAILURE(Load(GetParam()));
  EXPECT_EQ(recording_.TakeRaces(), "");
  ASSERT_NO_FATAL_FAILURE(Run(GetParam().trains));
  EXPECT_EQ(recording_.TakeRaces(), "");
}

INSTANTIATE_TEST_SUITE_P(Inference, GpuRacesTest,
                         testing::ValuesIn(Inference()),
                         [](const auto& info) { return NameOf(info.param); });
INSTANTIATE_TEST_SUITE_P(Training, GpuRacesTest, testing::ValuesIn(Training()),
                         [](const auto& info) { return NameOf(info.param); });

// Without the waits between streams there are races, and they are found.
using BrokenGpuRacesTest = GpuRacesTest;
TEST_F(BrokenGpuRacesTest, AreFound) {
  recording_.Watch();
  setenv("PARTITA_CUDA_GRAPHS", "0", 1);  // devices read it when they are made
  Load({"gpt2_4l", {"B2", "d=2", "B=d"}, /*trains=*/true});
  unsetenv("PARTITA_CUDA_GRAPHS");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(recording_.TakeRaces(), "");
  recording_.Skip("cuStreamWaitEvent");
  Run(/*trains=*/true);
  recording_.FailNext("cuStreamWaitEvent", cuda::kCuSuccess, 0);
  // The sum of losses runs beside; the generated kernel before it counts.
  EXPECT_THAT(recording_.TakeRaces(),
              testing::ContainsRegex("nccl[A-Za-z]+ reads what kernel_"));
}

}  // namespace
}  // namespace partita::e2e
