// Runs imported modules through the interpreter with the weights in their
// #nn.file.
#ifndef PARTITA_TESTS_FRONTENDS_HUGGINGFACE_RUN_H_
#define PARTITA_TESTS_FRONTENDS_HUGGINGFACE_RUN_H_

#include <functional>
#include <string>
#include <vector>

#include "dialects/nn/tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/base/safetensors.h"

namespace partita::huggingface {

// A tensor of a file in its stored type; fails the test if there is none.
nn::Tensor readTensor(const base::SafetensorsFile& file,
                      const std::string& name, mlir::MLIRContext* context);

// A context with the references of all operations that collects diagnostics.
class Runner {
 public:
  Runner();
  mlir::MLIRContext* context() { return &context_; }
  // All diagnostics so far, one per line: "error: ...".
  const std::string& diagnostics() const { return diagnostics_; }

  // The results of @main. `input` gives the inputs by name, `seeded` the
  // weights without a file (null: there are none).
  std::vector<nn::Tensor> run(
      mlir::ModuleOp module,
      const std::function<nn::Tensor(const std::string&)>& input,
      const std::function<void(nn::Tensor&, const std::string&)>& seeded =
          nullptr);

 private:
  mlir::MLIRContext context_;
  std::string diagnostics_;
};

}  // namespace partita::huggingface

#endif  // PARTITA_TESTS_FRONTENDS_HUGGINGFACE_RUN_H_
