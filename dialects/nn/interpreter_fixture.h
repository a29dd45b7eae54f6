// Test fixture of the dialect's unit tests: modules from text, random tensors,
// runs through the interpreter, comparison.
#ifndef PARTITA_DIALECTS_NN_INTERPRETER_FIXTURE_H_
#define PARTITA_DIALECTS_NN_INTERPRETER_FIXTURE_H_

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "dialects/nn/tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::nn {

class InterpreterFixture : public testing::Test {
 protected:
  InterpreterFixture();

  // Parses a module. Null, with a test failure, if the text does not parse.
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string& text);
  mlir::func::FuncOp functionNamed(mlir::ModuleOp module,
                                   const std::string& name);

  // Makes a tensor from a type such as "tensor<2xf32>" and its elements in
  // row-major order.
  Tensor tensor(const std::string& type, const std::vector<double>& values);
  mlir::RankedTensorType typeFrom(const std::string& type);
  // Floats from a normal distribution; integers from 0 to 9.
  Tensor random(mlir::RankedTensorType type);
  std::vector<Tensor> randomArguments(mlir::func::FuncOp function);

  // Runs @f in a module with the function in `text` and returns its results as
  // numbers.
  std::vector<std::vector<double>> run(const std::string& text,
                                       const std::vector<Tensor>& arguments);
  // Returns the one result of `body`. `body` defines %r of type `result` from
  // the arguments %a, %b, ...
  std::vector<double> evaluate(const std::string& body,
                               const std::string& result,
                               const std::vector<Tensor>& arguments);

  mlir::MLIRContext context_;
  std::mt19937 generator_{7};
};

std::vector<double> numbersOf(const Tensor& tensor);

// Requires for each element: |found - expected| <= absolute + relative *
// |expected|, or both NaN, or the same infinity.
void expectClose(const Tensor& found, const Tensor& expected, double absolute,
                 double relative);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_INTERPRETER_FIXTURE_H_
