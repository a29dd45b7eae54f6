// Compiles to a file, as a user would, and runs it through the executor.
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

absl::StatusOr<std::unique_ptr<CompiledModel>> CompiledModel::Make(
    mlir::ModuleOp module, const std::string& folder, const std::string& name,
    int threads) {
  std::string errors;
  mlir::ScopedDiagnosticHandler handler(
      module.getContext(), [&](mlir::Diagnostic& diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          llvm::raw_string_ostream(errors) << diagnostic << "\n";
      });
  auto model = std::make_unique<CompiledModel>();
  driver::CompileOptions options;
  options.output = folder + "/" + name + ".partita";
  auto report = driver::compileToFile(module, options);
  if (mlir::failed(report)) return absl::InvalidArgumentError(errors);
  model->report_ = *report;
  auto device = cpu::MakeCpuDevice({threads});
  if (!device.ok()) return device.status();
  model->device_ = std::move(*device);
  auto executor = executor::Executor::Load(options.output, *model->device_);
  if (!executor.ok()) return executor.status();
  model->executor_ = std::move(*executor);
  return model;
}

absl::StatusOr<std::vector<HostTensor>> CompiledModel::Run(
    const std::map<std::string, HostTensor>& inputs) {
  std::vector<HostTensor> ordered;
  auto next = inputs.begin();
  for (const executor::TensorSpec& spec : executor_->inputs()) {
    auto found = inputs.find(spec.name);
    if (found == inputs.end() && inputs.size() == executor_->inputs().size())
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
  for (const executor::TensorSpec& spec : executor_->outputs())
    outputs.push_back({spec.dtype, spec.shape, std::string(spec.bytes, '\0')});
  for (HostTensor& output : outputs)
    results.push_back({output.dtype, output.shape, output.bytes.data()});
  if (absl::Status status = executor_->Run(arguments, results); !status.ok())
    return status;
  return outputs;
}

}  // namespace partita::e2e
