// A model compiled to an artifact and loaded on the CPU, in one process.
#ifndef PARTITA_TESTS_E2E_COMPILED_MODEL_H_
#define PARTITA_TESTS_E2E_COMPILED_MODEL_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/device/device.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/rank_group.h"
#include "tests/e2e/golden.h"

namespace partita::e2e {

// A context with everything that the compiler needs. Diagnostics are collected
// in `errors`.
class CompilerContext {
 public:
  CompilerContext();
  mlir::MLIRContext* get() { return &context_; }
  std::string errors;

 private:
  mlir::MLIRContext context_;
};

class CompiledModel {
 public:
  // Compiles `module` into `folder` and loads it with `threads` threads. `name`
  // distinguishes artifacts in one folder. On failure, the status contains the
  // compiler's diagnostics.
  static absl::StatusOr<std::unique_ptr<CompiledModel>> Make(
      mlir::ModuleOp module, const std::string& folder, const std::string& name,
      int threads);
  // Divides the model by `plan`, and runs it on one single-threaded rank of
  // this process per device of the plan's mesh.
  static absl::StatusOr<std::unique_ptr<CompiledModel>> MakeDivided(
      mlir::ModuleOp module, const std::string& folder, const std::string& name,
      const plan::Plan& plan);

  // Compiles a training step, on one device or divided.
  static absl::StatusOr<std::unique_ptr<CompiledModel>> MakeTraining(
      mlir::ModuleOp module, const std::string& folder, const std::string& name,
      const std::optional<plan::Plan>& plan, const driver::TrainOptions& train,
      plan::Precision precision = plan::Precision::kF32);

  // Runs on inputs by name, or by position if the model has no such name.
  absl::StatusOr<std::vector<HostTensor>> Run(
      const std::map<std::string, HostTensor>& inputs);
  // Runs on inputs in order.
  absl::StatusOr<std::vector<HostTensor>> Run(
      const std::vector<HostTensor>& inputs);

  // The current value of a parameter or state; not for models made by Make.
  absl::StatusOr<HostTensor> ReadParameter(const std::string& name);
  // Replaces a trained parameter or a state.
  absl::Status WriteParameter(const std::string& name,
                              const HostTensor& tensor);

  const std::vector<executor::TensorSpec>& inputs() const {
    return ranks_ ? ranks_->inputs() : executor_->inputs();
  }
  const std::vector<executor::TensorSpec>& outputs() const {
    return ranks_ ? ranks_->outputs() : executor_->outputs();
  }
  // Not for models made by Make.
  const std::vector<executor::ParameterSpec>& parameters() const {
    return ranks_->parameters();
  }
  const driver::CompileReport& report() const { return report_; }
  executor::Executor& executor() { return *executor_; }

 private:
  absl::Status Compile(mlir::ModuleOp module,
                       const driver::CompileOptions& options);
  absl::Status LoadOnDevices(const std::string& path);

  driver::CompileReport report_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<executor::Executor> executor_;  // one of these two: undivided
  std::unique_ptr<executor::RankGroup> ranks_;    // divided
};

}  // namespace partita::e2e

#endif  // PARTITA_TESTS_E2E_COMPILED_MODEL_H_
