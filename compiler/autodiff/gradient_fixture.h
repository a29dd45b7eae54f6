// Holds gradients against central differences of the operation's reference.
#ifndef PARTITA_COMPILER_AUTODIFF_GRADIENT_FIXTURE_H_
#define PARTITA_COMPILER_AUTODIFF_GRADIENT_FIXTURE_H_

#include <ostream>
#include <string>
#include <vector>

#include "compiler/autodiff/gradient.h"
#include "dialects/nn/interpreter_fixture.h"

namespace partita::autodiff {

// A function whose last operation is under test: lines that define %r (%r:n for
// n results) of types `results` from %a, %b, ... of types `arguments`.
struct Case {
  std::vector<std::string> arguments;
  std::vector<std::string> results;
  std::string body;
  // Float arguments lie between.
  double low = -2, high = 2;
  // Results that take part in the loss; the others have no gradient.
  unsigned losses = 1;
  // Of the differences, and what they may be off by, relative to 1 or more.
  double step = 1e-5, tolerance = 1e-6;
};
std::ostream& operator<<(std::ostream& out, const Case& test);

// Types and bodies of the case with "f64" as "bf16".
Case narrowed(Case test);

class GradientFixture : public nn::InterpreterFixture {
 protected:
  GradientFixture();

  std::vector<nn::Tensor> argumentsOf(const Case& test);
  // Random weights of the results.
  std::vector<nn::Tensor> weightsOf(const Case& test);

  // Gradients of sum(weights * results) by the operation's model, one for each
  // argument, zero where nothing flows; those that are not wanted are zero. A
  // test failure and nothing if there are none or the IR is not valid.
  std::vector<std::vector<double>> gradients(
      const Case& test, const std::vector<nn::Tensor>& arguments,
      const std::vector<nn::Tensor>& weights, const std::vector<bool>& wanted);
  // The same by central differences.
  std::vector<std::vector<double>> differences(
      const Case& test, const std::vector<nn::Tensor>& arguments,
      const std::vector<nn::Tensor>& weights);

  // Gradients agree with differences for every set of wanted arguments.
  void checkCase(const Case& test, unsigned seed);

  // The function is @f.
  mlir::OwningOpRef<mlir::ModuleOp> moduleOf(const Case& test);

 private:
  double loss(mlir::func::FuncOp function,
              const std::vector<nn::Tensor>& arguments,
              const std::vector<nn::Tensor>& weights);
};

// |x - y| <= tolerance * max(1, |y|), or both NaN, for each element.
void expectNear(const std::vector<double>& found,
                const std::vector<double>& expected, double tolerance);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_GRADIENT_FIXTURE_H_
