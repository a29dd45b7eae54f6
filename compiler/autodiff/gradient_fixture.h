// Compares gradients with central differences of the operation's reference.
#ifndef PARTITA_COMPILER_AUTODIFF_GRADIENT_FIXTURE_H_
#define PARTITA_COMPILER_AUTODIFF_GRADIENT_FIXTURE_H_

#include <ostream>
#include <string>
#include <vector>

#include "compiler/autodiff/gradient.h"
#include "dialects/nn/interpreter_fixture.h"

namespace partita::autodiff {

// A function whose last operation is under test. `body` has lines that define
// %r (%r:n for n results) of types `results` from %a, %b, ... of types
// `arguments`.
struct Case {
  std::vector<std::string> arguments;
  std::vector<std::string> results;
  std::string body;
  // Range of float arguments.
  double low = -2, high = 2;
  // Number of leading results in the loss; the others have no gradient.
  unsigned losses = 1;
  // Step of the differences; allowed error, relative to max(1, |y|).
  double step = 1e-5, tolerance = 1e-6;
};
std::ostream& operator<<(std::ostream& out, const Case& test);

// Returns the case with "f64" replaced by "bf16" in types and body.
Case narrowed(Case test);

class GradientFixture : public nn::InterpreterFixture {
 protected:
  GradientFixture();

  std::vector<nn::Tensor> argumentsOf(const Case& test);
  // Returns random weights of the results.
  std::vector<nn::Tensor> weightsOf(const Case& test);

  // Returns the gradients of sum(weights * results) by the operation's model,
  // one per argument. A gradient is zero if none flows or it is not wanted.
  // Reports a test failure and returns nothing if the model fails or the IR is
  // invalid.
  std::vector<std::vector<double>> gradients(
      const Case& test, const std::vector<nn::Tensor>& arguments,
      const std::vector<nn::Tensor>& weights, const std::vector<bool>& wanted);
  // Returns the same gradients by central differences.
  std::vector<std::vector<double>> differences(
      const Case& test, const std::vector<nn::Tensor>& arguments,
      const std::vector<nn::Tensor>& weights);

  // Checks that gradients agree with differences for every set of wanted
  // arguments.
  void checkCase(const Case& test, unsigned seed);

  // Returns a module with the function @f.
  mlir::OwningOpRef<mlir::ModuleOp> moduleOf(const Case& test);

 private:
  double loss(mlir::func::FuncOp function,
              const std::vector<nn::Tensor>& arguments,
              const std::vector<nn::Tensor>& weights);
};

// Checks |x - y| <= tolerance * max(1, |y|), or both NaN, per element.
void expectNear(const std::vector<double>& found,
                const std::vector<double>& expected, double tolerance);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_GRADIENT_FIXTURE_H_
