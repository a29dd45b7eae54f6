// One training run of a golden model, compared with PyTorch: the gradients of
// the first step, the parameters after it, and the losses of five steps with
// AdamW.
#ifndef PARTITA_TESTS_E2E_TRAINING_CASE_H_
#define PARTITA_TESTS_E2E_TRAINING_CASE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "compiler/driver/import_model.h"
#include "mlir/IR/OwningOpRef.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/divisions.h"
#include "tests/e2e/golden_training.h"

namespace partita::e2e {

// The microbatches of a step: the golden batch cut into `count` parts or, if
// `repeated`, repeated `count` times and cut into as many parts.
struct Microbatches {
  int64_t count = 1;
  bool repeated = false;
};

inline constexpr Division kWhole = {"Whole", "", ""};

struct TrainingCase {
  const char* model = "";
  Division division = kWhole;
  int zero = 0;
  Microbatches microbatches;
  const char* schedule = "";  // the value of --schedule; empty: none in the
                              // plan
  bool from_folder = false;   // import from a config instead of a file
  const char* data = "onnx-tiny";         // folder of models in tests/data
  const char* file = "model_train.onnx";  // in the folder of the model
  // A PEFT folder in the folder of the model, whose adapters are trained;
  // empty: none.
  const char* adapters = "";
  // A folder in the folder of the model, as --weights names it; empty: none.
  const char* weights = "";
  // A folder beside the model's, of the teacher that it distils, and the value
  // of --distill; empty: none.
  const char* teacher = "";
  const char* distill = "";
  // The prefix of the names of PyTorch's results.
  const char* run = "";
};

// A name of letters, digits and _.
std::string NameOf(const TrainingCase& which);

class TrainingRun {
 public:
  // Imports, compiles and loads the model.
  absl::Status Start(const TrainingCase& which);
  // Takes the steps and checks the results with gtest expectations.
  void ExpectEqualsPyTorch();
  // Takes the first step and returns its loss.
  double FirstLoss();
  const CompiledModel& model() const { return *model_; }

 private:
  mlir::OwningOpRef<mlir::ModuleOp> Import(const TrainingCase& which,
                                           const std::string& folder,
                                           mlir::MLIRContext* context) const;
  // The outputs of step `step` by name.
  std::map<std::string, HostTensor> Step(int64_t step);
  void ExpectGradients(const std::map<std::string, HostTensor>& outputs);
  void ExpectParameters(const std::map<std::string, HostTensor>& outputs);

  GoldenTraining golden_;
  std::unique_ptr<CompiledModel> model_;
};

}  // namespace partita::e2e

#endif  // PARTITA_TESTS_E2E_TRAINING_CASE_H_
