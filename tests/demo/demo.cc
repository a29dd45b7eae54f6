// //:demo: a one-minute tour. Imports models by three frontends, compiles,
// divides and runs them, and compares the results with PyTorch's.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "compiler/driver/import_model.h"
#include "compiler/plan/plan.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/golden.h"

namespace partita::demo {
namespace {

using e2e::CompiledModel;
using e2e::CompilerContext;
using e2e::HostTensor;

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Show {
  std::string title;
  std::string model;     // the argument of `partita import`
  std::string expected;  // golden output in io.safetensors; empty: none
  std::string golden;    // folder of io.safetensors
  std::map<std::string, int64_t> dims;
  std::string mesh, shard;  // as on the command line; empty mesh: one device
};

// Inputs without a recording: standard normal numbers, or tokens 1, 2, 3 ...
std::map<std::string, HostTensor> MakeInputs(const CompiledModel& model) {
  std::map<std::string, HostTensor> inputs;
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  for (const executor::TensorSpec& spec : model.inputs()) {
    HostTensor tensor{spec.dtype, spec.shape, std::string(spec.bytes, '\0')};
    if (spec.dtype == base::DType::kF32)
      for (int64_t i = 0; i < tensor.elements(); ++i)
        reinterpret_cast<float*>(tensor.bytes.data())[i] = normal(generator);
    else if (spec.dtype == base::DType::kI64)
      for (int64_t i = 0; i < tensor.elements(); ++i)
        reinterpret_cast<int64_t*>(tensor.bytes.data())[i] = i % 100;
    inputs[spec.name] = std::move(tensor);
  }
  return inputs;
}

void PrintReport(const driver::CompileReport& report) {
  std::printf(
      "  model     %lld operations, %lld parameters (%.2f M numbers), %lld "
      "kinds of layers called %lld times\n",
      static_cast<long long>(report.operations),
      static_cast<long long>(report.parameters),
      report.parameter_elements / 1e6,
      static_cast<long long>(report.layer_kinds),
      static_cast<long long>(report.layer_calls));
  std::printf(
      "  program   %lld generated kernels, %lld matrix products and %lld "
      "convolutions by library\n",
      static_cast<long long>(report.kernels),
      static_cast<long long>(report.gemms),
      static_cast<long long>(report.convolutions));
  if (report.devices > 1)
    std::printf("  devices   %lld, one program for all, %lld collectives\n",
                static_cast<long long>(report.devices),
                static_cast<long long>(report.collectives));
  std::printf("  memory    %.2f MB planned for activations\n",
              report.arena_bytes / 1e6);
  std::printf("  compiled  in %.2f s\n", report.seconds);
}

double MedianSeconds(CompiledModel& model,
                     const std::map<std::string, HostTensor>& inputs) {
  std::vector<double> times;
  const double begin = Now();
  while (times.size() < 5 || (times.size() < 50 && Now() - begin < 2)) {
    const double start = Now();
    if (!model.Run(inputs).ok()) break;
    times.push_back(Now() - start);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

absl::StatusOr<std::unique_ptr<CompiledModel>> Compile(
    const Show& show, mlir::ModuleOp module, const std::string& folder) {
  const std::string name = std::filesystem::path(show.model).stem().string();
  if (show.mesh.empty())
    return CompiledModel::Make(module, folder, name, /*threads=*/0);
  plan::Plan plan;
  absl::StatusOr<core::Mesh> mesh = plan::ParseMeshOption(show.mesh);
  if (!mesh.ok()) return mesh.status();
  plan.mesh = *mesh;
  auto entries = plan::ParseShardOption(show.shard, plan.mesh);
  if (!entries.ok()) return entries.status();
  plan.shard = *entries;
  std::printf("  divided   over %s by %s\n", show.mesh.c_str(),
              show.shard.c_str());
  return CompiledModel::MakeDivided(module, folder, name, plan);
}

// Runs one model from file to result. Returns false if a check fails.
bool Run(const Show& show, const std::string& folder) {
  std::printf("\n%s\n  import    %s\n", show.title.c_str(), show.model.c_str());
  std::fflush(stdout);
  CompilerContext context;
  driver::ImportOptions options;
  options.dims = show.dims;
  auto module = driver::importModel(show.model, options, context.get());
  if (!module) return std::printf("  error: %s", context.errors.c_str()), false;
  auto model = Compile(show, *module, folder);
  if (!model.ok())
    return std::printf("  error: %s\n",
                       std::string(model.status().message()).c_str()),
           false;
  PrintReport((*model)->report());
  std::map<std::string, HostTensor> inputs = MakeInputs(**model);
  if (!show.golden.empty()) {
    auto golden = e2e::ReadTensors(show.golden, "in.");
    if (!golden.ok()) return std::printf("  error: no golden inputs\n"), false;
    inputs = *golden;
  }
  auto outputs = (*model)->Run(inputs);
  if (!outputs.ok())
    return std::printf("  error: %s\n",
                       std::string(outputs.status().message()).c_str()),
           false;
  std::printf("  run       in %.3f ms (median)\n",
              MedianSeconds(**model, inputs) * 1e3);
  const HostTensor& answer = outputs->front();
  const int64_t row = answer.shape.back();
  const float* last = answer.floats() + answer.elements() - row;
  const float* best = std::max_element(last, last + row);
  std::printf("  answer    class %lld of %lld, score %.4f\n",
              static_cast<long long>(best - last), static_cast<long long>(row),
              *best);
  if (show.expected.empty()) return std::isfinite(*best);
  auto expected = e2e::ReadTensors(show.golden, show.expected);
  if (!expected.ok() || expected->empty()) return false;
  e2e::Distance distance =
      e2e::Compare(answer, expected->begin()->second, 1e-4, 1e-5);
  std::printf(
      "  distance  %.1e from PyTorch's answer (largest value %.2f): %s\n",
      distance.largest, distance.largest_expected,
      distance.within ? "equal" : "DIFFERENT");
  return distance.within;
}

int Main() {
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("partita-demo-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder, error);
  const std::string data = "tests/data/onnx-tiny/";
  bool fine = true;
  for (const Show& show : {
           Show{"GPT-2, tiny, as exported to ONNX",
                data + "gpt2/model_eval.onnx",
                "out.eval.y",
                data + "gpt2/io.safetensors",
                {{"batch", 2}, {"seq", 12}},
                "",
                ""},
           Show{"GPT-2, tiny, as a Hugging Face folder",
                data + "gpt2",
                "out.eval.y",
                data + "gpt2/io.safetensors",
                {{"batch", 2}, {"seq", 12}},
                "",
                ""},
           Show{"CoAtNet, tiny, as exported to ONNX",
                data + "coatnet_bias/model_eval.onnx",
                "out.eval.y",
                data + "coatnet_bias/io.safetensors",
                {{"batch", 4}},
                "",
                ""},
           Show{"GPT-2, tiny, on 4 devices: data and tensor parallel, with "
                "sequence parallelism",
                data + "gpt2/model_eval.onnx",
                "out.eval.y",
                data + "gpt2/io.safetensors",
                {{"batch", 2}, {"seq", 12}},
                "data=2,tensor=2",
                "B=data;M=tensor,N=tensor,V=tensor;L=tensor"},
           Show{"CoAtNet, tiny, its images cut in 2 x 2",
                data + "coatnet_bias/model_eval.onnx",
                "out.eval.y",
                data + "coatnet_bias/io.safetensors",
                {{"batch", 4}},
                "rows=2,columns=2",
                "H=rows,W=columns"},
           Show{"CoAtNet-0 at 224x224, by name, seeded weights",
                "coatnet-0",
                "",
                "",
                {{"batch", 1}},
                "",
                ""},
       })
    fine &= Run(show, folder.string());
  std::filesystem::remove_all(folder, error);
  std::printf("\n%s\n",
              fine ? "All answers are right." : "SOMETHING IS WRONG.");
  return fine ? 0 : 1;
}

}  // namespace
}  // namespace partita::demo

int main() { return partita::demo::Main(); }
