// Implementation of the dialect's test fixture.
#include "dialects/nn/interpreter_fixture.h"

#include <cmath>

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Parser/Parser.h"

namespace partita::nn {

InterpreterFixture::InterpreterFixture() {
  mlir::DialectRegistry registry;
  registry.insert<NNDialect, mlir::func::FuncDialect>();
  registerExternalModels(registry);
  context_.appendDialectRegistry(registry);
  context_.loadAllAvailableDialects();
}

mlir::OwningOpRef<mlir::ModuleOp> InterpreterFixture::parse(
    const std::string& text) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
  EXPECT_TRUE(module) << text;
  return module;
}

mlir::func::FuncOp InterpreterFixture::functionNamed(mlir::ModuleOp module,
                                                     const std::string& name) {
  return module.lookupSymbol<mlir::func::FuncOp>(name);
}

mlir::RankedTensorType InterpreterFixture::typeFrom(const std::string& type) {
  return mlir::cast<mlir::RankedTensorType>(mlir::parseType(type, &context_));
}

Tensor InterpreterFixture::tensor(const std::string& type,
                                  const std::vector<double>& values) {
  Tensor result(typeFrom(type));
  EXPECT_EQ(result.size(), static_cast<int64_t>(values.size()));
  for (int64_t i = 0; i < result.size(); ++i) {
    if (result.isFloat()) {
      result.setFloat(i, values[i]);
    } else {
      result.setInt(i, static_cast<int64_t>(values[i]));
    }
  }
  return result;
}

Tensor InterpreterFixture::random(mlir::RankedTensorType type) {
  Tensor result(type);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int64_t> digit(0, 9);
  for (int64_t i = 0; i < result.size(); ++i) {
    if (result.isFloat()) {
      result.setFloat(i, normal(generator_));
    } else {
      result.setInt(i, digit(generator_));
    }
  }
  return result;
}

std::vector<Tensor> InterpreterFixture::randomArguments(
    mlir::func::FuncOp function) {
  std::vector<Tensor> arguments;
  for (mlir::Type type : function.getArgumentTypes()) {
    arguments.push_back(random(mlir::cast<mlir::RankedTensorType>(type)));
  }
  return arguments;
}

std::vector<std::vector<double>> InterpreterFixture::run(
    const std::string& text, const std::vector<Tensor>& arguments) {
  auto module = parse(text);
  if (!module) return {};
  auto results = interpret(functionNamed(*module, "f"), arguments);
  EXPECT_TRUE(mlir::succeeded(results)) << text;
  if (mlir::failed(results)) return {};
  std::vector<std::vector<double>> numbers;
  for (const Tensor& result : *results) numbers.push_back(numbersOf(result));
  return numbers;
}

std::vector<double> InterpreterFixture::evaluate(
    const std::string& body, const std::string& result,
    const std::vector<Tensor>& arguments) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "func.func @f(";
  char name = 'a';
  for (const Tensor& argument : arguments) {
    out << (name == 'a' ? "" : ", ") << "%" << name << ": " << argument.type();
    ++name;
  }
  out << ") -> " << result << " {\n"
      << body << "\nreturn %r : " << result << "\n}";
  const auto results = run(text, arguments);
  return results.size() == 1 ? results.front() : std::vector<double>();
}

std::vector<double> numbersOf(const Tensor& tensor) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    numbers.push_back(tensor.isFloat() ? tensor.getFloat(i)
                                       : static_cast<double>(tensor.getInt(i)));
  }
  return numbers;
}

void expectClose(const Tensor& found, const Tensor& expected, double absolute,
                 double relative) {
  ASSERT_TRUE(found.type() == expected.type());
  const std::vector<double> x = numbersOf(found), y = numbersOf(expected);
  for (size_t i = 0; i < x.size(); ++i) {
    const bool close =
        x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])) ||
        std::abs(x[i] - y[i]) <= absolute + relative * std::abs(y[i]);
    ASSERT_TRUE(close) << "element " << i << ": expected " << y[i] << ", found "
                       << x[i];
  }
}

}  // namespace partita::nn
