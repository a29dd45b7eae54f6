// What the dialect's unit tests share: modules from text, random tensors, runs
// through the interpreter, comparison.
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

  // The module of this text; a test failure and null if it does not parse.
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string& text);
  mlir::func::FuncOp functionNamed(mlir::ModuleOp module,
                                   const std::string& name);

  // A tensor from "tensor<2xf32>" and its elements in row-major order.
  Tensor tensor(const std::string& type, const std::vector<double>& values);
  mlir::RankedTensorType typeFrom(const std::string& type);
  // Floats of a normal distribution; integers from 0 to 9.
  Tensor random(mlir::RankedTensorType type);
  std::vector<Tensor> randomArguments(mlir::func::FuncOp function);

  // Results of @f in a module that holds a function of this text, as numbers.
  std::vector<std::vector<double>> run(const std::string& text,
                                       const std::vector<Tensor>& arguments);
  // The one result of `body`, lines that define %r of type `result` from
  // %a, %b, ... of the arguments' types.
  std::vector<double> evaluate(const std::string& body,
                               const std::string& result,
                               const std::vector<Tensor>& arguments);

  mlir::MLIRContext context_;
  std::mt19937 generator_{7};
};

std::vector<double> numbersOf(const Tensor& tensor);

// |found - expected| <= absolute + relative * |expected|, or both NaN, or the
// same infinity, for each element.
void expectClose(const Tensor& found, const Tensor& expected, double absolute,
                 double relative);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_INTERPRETER_FIXTURE_H_
