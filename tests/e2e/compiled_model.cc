// Compiles to a file, like a user, and runs it with the executor.
#include "tests/e2e/compiled_model.h"

#include "compiler/driver/registry.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/cpu/cpu_device.h"

namespace partita::e2e {

CompilerContext::CompilerContext()
    : context_(mlir::MLIRContext::Threading::DISABLED) {
  mlir::DialectRegistry registry;
  driver::registerDialects(registry);
  context_.appendDialectRegistry(registry);
  context_.loadAllAvailableDialects();
  context_.getDiagEngine().registerHandler(
      [this](mlir::Diagnostic& diagnostic) {
        if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error) return;
        llvm::raw_string_ostream(errors)
            << diagnostic << " [" << diagnostic.getLocation() << "]\n";
      });
}

absl::Status CompiledModel::Compile(mlir::ModuleOp module,
                                    const driver::CompileOptions& options) {
  std::string errors;
  mlir::ScopedDiagnosticHandler handler(
      module.getContext(), [&](mlir::Diagnostic& diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          llvm::raw_string_ostream(errors) << diagnostic << "\n";
      });
  auto report = driver::compileToFile(module, options);
  if (mlir::failed(report)) return absl::InvalidArgumentError(errors);
  report_ = *report;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CompiledModel>> CompiledModel::Make(
    mlir::ModuleOp module, const std::string& folder, const std::string& name,
    int threads) {
  auto model = std::make_unique<CompiledModel>();
  driver::CompileOptions options;
  options.output = folder + "/" + name + ".partita";
  if (absl::Status status = model->Compile(module, options); !status.ok())
    return status;
  auto device = cpu::MakeCpuDevice({threads});
  if (!device.ok()) return device.status();
  model->device_ = std::move(*device);
  auto executor = executor::Executor::Load(options.output, *model->device_);
  if (!executor.ok()) return executor.status();
  model->executor_ = std::move(*executor);
  return model;
}

absl::StatusOr<std::unique_ptr<CompiledModel>> CompiledModel::MakeDivided(
    mlir::ModuleOp module, const std::string& folder, const std::string& name,
    const plan::Plan& plan) {
  auto model = std::make_unique<CompiledModel>();
  driver::CompileOptions options;
  options.output = folder + "/" + name + ".partita";
  options.plan = plan;
  if (absl::Status status = model->Compile(module, options); !status.ok())
    return status;
  if (absl::Status status = model->LoadOnDevices(options.output); !status.ok())
    return status;
  return model;
}

absl::StatusOr<std::unique_ptr<CompiledModel>> CompiledModel::MakeTraining(
    mlir::ModuleOp module, const std::string& folder, const std::string& name,
    const std::optional<plan::Plan>& plan, const driver::TrainOptions& train,
    plan::Precision precision) {
  auto model = std::make_unique<CompiledModel>();
  driver::CompileOptions options;
  options.output = folder + "/" + name + ".partita";
  options.plan = plan;
  options.train = train;
  options.precision = precision;
  if (absl::Status status = model->Compile(module, options); !status.ok())
    return status;
  if (absl::Status status = model->LoadOnDevices(options.output); !status.ok())
    return status;
  return model;
}

absl::Status CompiledModel::LoadOnDevices(const std::string& path) {
  executor::GroupOptions run;
  run.make_device = [](int) { return cpu::MakeCpuDevice({/*threads=*/1}); };
  auto ranks = executor::RankGroup::LoadAll(path, run);
  if (!ranks.ok()) return ranks.status();
  ranks_ = std::move(*ranks);
  return absl::OkStatus();
}

absl::StatusOr<HostTensor> CompiledModel::ReadParameter(
    const std::string& name) {
  for (const executor::ParameterSpec& spec : ranks_->parameters()) {
    if (spec.whole.name != name) continue;
    HostTensor tensor = {spec.whole.dtype, spec.whole.shape,
                         std::string(spec.whole.bytes, '\0')};
    absl::Status status = ranks_->ReadParameter(
        name, {tensor.dtype, tensor.shape, tensor.bytes.data()});
    if (!status.ok()) return status;
    return tensor;
  }
  return absl::NotFoundError("no parameter named " + name);
}

absl::Status CompiledModel::WriteParameter(const std::string& name,
                                           const HostTensor& tensor) {
  return ranks_->WriteParameter(
      name, {tensor.dtype, tensor.shape, tensor.bytes.data()});
}

absl::StatusOr<std::vector<HostTensor>> CompiledModel::Run(
    const std::map<std::string, HostTensor>& inputs) {
  std::vector<HostTensor> ordered;
  auto next = inputs.begin();
  for (const executor::TensorSpec& spec : this->inputs()) {
    auto found = inputs.find(spec.name);
    if (found == inputs.end() && inputs.size() == this->inputs().size())
      found = next;
    if (found == inputs.end())
      return absl::InvalidArgumentError("no value for input " + spec.name);
    ordered.push_back(found->second);
    ++next;
  }
  return Run(ordered);
}

absl::StatusOr<std::vector<HostTensor>> CompiledModel::Run(
    const std::vector<HostTensor>& inputs) {
  std::vector<executor::ConstTensor> arguments;
  for (const HostTensor& input : inputs)
    arguments.push_back({input.dtype, input.shape, input.bytes.data()});
  std::vector<HostTensor> outputs;
  std::vector<executor::MutableTensor> results;
  for (const executor::TensorSpec& spec : this->outputs())
    outputs.push_back({spec.dtype, spec.shape, std::string(spec.bytes, '\0')});
  for (HostTensor& output : outputs)
    results.push_back({output.dtype, output.shape, output.bytes.data()});
  absl::Status status = ranks_ ? ranks_->Run(arguments, results)
                               : executor_->Run(arguments, results);
  if (!status.ok()) return status;
  return outputs;
}

}  // namespace partita::e2e
