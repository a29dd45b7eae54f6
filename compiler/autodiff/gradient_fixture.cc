// Implementation of the gradients' test fixture.
#include "compiler/autodiff/gradient_fixture.h"

#include <cmath>

#include "dialects/nn/interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

namespace partita::autodiff {

using nn::Tensor;

namespace {

bool isFloat(mlir::Type type) {
  return mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(type));
}

std::string functionText(const Case& test) {
  std::string arguments;
  char name = 'a';
  for (const std::string& type : test.arguments) {
    arguments += arguments.empty() ? "%" : ", %";
    arguments += name++;
    arguments += ": " + type;
  }
  std::string values = test.results.size() == 1 ? "%r" : "%r#0";
  for (size_t i = 1; i < test.results.size(); ++i)
    values += ", %r#" + std::to_string(i);
  const std::string results = llvm::join(test.results, ", ");
  return "func.func @f(" + arguments + ") -> (" + results + ") {\n" +
         test.body + "\nreturn " + values + " : " + results + "\n}";
}

void replaceAll(std::string& text, const std::string& from,
                const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Case& test) {
  return out << functionText(test);
}

Case narrowed(Case test) {
  for (std::string& type : test.arguments) replaceAll(type, "f64", "bf16");
  for (std::string& type : test.results) replaceAll(type, "f64", "bf16");
  // Attributes of type f64 keep their type.
  replaceAll(test.body, "xf64", "xbf16");
  replaceAll(test.body, "<f64", "<bf16");
  return test;
}

GradientFixture::GradientFixture() {
  mlir::DialectRegistry registry;
  registerGradients(registry);
  context_.appendDialectRegistry(registry);
}

mlir::OwningOpRef<mlir::ModuleOp> GradientFixture::moduleOf(const Case& test) {
  return parse(functionText(test));
}

std::vector<Tensor> GradientFixture::argumentsOf(const Case& test) {
  std::uniform_real_distribution<double> uniform(test.low, test.high);
  std::vector<Tensor> arguments;
  for (const std::string& type : test.arguments) {
    Tensor argument = random(typeFrom(type));
    for (int64_t i = 0; argument.isFloat() && i < argument.size(); ++i)
      argument.setFloat(i, uniform(generator_));
    arguments.push_back(argument);
  }
  return arguments;
}

std::vector<Tensor> GradientFixture::weightsOf(const Case& test) {
  std::vector<Tensor> weights;
  for (unsigned i = 0; i < test.losses; ++i)
    weights.push_back(random(typeFrom(test.results[i])));
  return weights;
}

std::vector<std::vector<double>> GradientFixture::gradients(
    const Case& test, const std::vector<Tensor>& arguments,
    const std::vector<Tensor>& weights, const std::vector<bool>& wanted) {
  auto module = moduleOf(test);
  if (!module) return {};
  mlir::func::FuncOp function = functionNamed(*module, "f");
  mlir::Block& block = function.front();
  mlir::Operation* op = block.getTerminator()->getPrevNode();
  auto model = mlir::dyn_cast<GradientOpInterface>(op);
  EXPECT_TRUE(model) << "no gradient";
  if (!model) return {};

  mlir::OpBuilder builder(block.getTerminator());
  llvm::SmallVector<mlir::Value> of_results(op->getNumResults());
  for (auto [i, weight] : llvm::enumerate(weights))
    of_results[i] = block.addArgument(weight.type(), op->getLoc());
  llvm::SmallVector<bool> wanted_operands;
  for (mlir::Value operand : op->getOperands()) {
    auto argument = mlir::dyn_cast<mlir::BlockArgument>(operand);
    wanted_operands.push_back(argument && wanted[argument.getArgNumber()]);
  }
  Gradient gradient(builder, op, of_results, wanted_operands);
  const bool built = mlir::succeeded(model.buildGradient(gradient));
  EXPECT_TRUE(built);
  if (!built) return {};

  llvm::SmallVector<mlir::Value> results;
  for (mlir::BlockArgument argument : block.getArguments()) {
    if (argument.getArgNumber() == arguments.size()) break;
    mlir::Value sum;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      const mlir::Value part = gradient.operands()[i];
      EXPECT_TRUE(!part || wanted_operands[i]) << "not wanted: operand " << i;
      if (operand != argument || !part) continue;
      EXPECT_EQ(part.getType(), operand.getType());
      sum = sum ? gradient.math.add(sum, part) : part;
    }
    if (!sum && isFloat(argument.getType()))
      sum = gradient.math.constant(nn::MathBuilder::typeOf(argument), 0);
    results.push_back(sum ? sum : argument);
  }
  block.getTerminator()->setOperands(results);
  function.setType(builder.getFunctionType(
      block.getArgumentTypes(), mlir::ValueRange(results).getTypes()));
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));

  std::vector<Tensor> all = arguments;
  all.insert(all.end(), weights.begin(), weights.end());
  auto values = nn::interpret(function, all);
  EXPECT_TRUE(mlir::succeeded(values));
  if (mlir::failed(values)) return {};
  std::vector<std::vector<double>> numbers;
  for (const Tensor& value : *values) numbers.push_back(nn::numbersOf(value));
  return numbers;
}

double GradientFixture::loss(mlir::func::FuncOp function,
                             const std::vector<Tensor>& arguments,
                             const std::vector<Tensor>& weights) {
  auto results = nn::interpret(function, arguments);
  EXPECT_TRUE(mlir::succeeded(results));
  if (mlir::failed(results)) return std::nan("");
  double sum = 0;
  for (auto [result, weight] : llvm::zip(*results, weights)) {
    for (int64_t i = 0; i < weight.size(); ++i)
      sum += result.getFloat(i) * weight.getFloat(i);
  }
  return sum;
}

std::vector<std::vector<double>> GradientFixture::differences(
    const Case& test, const std::vector<Tensor>& arguments,
    const std::vector<Tensor>& weights) {
  auto module = moduleOf(test);
  if (!module) return {};
  mlir::func::FuncOp function = functionNamed(*module, "f");
  std::vector<std::vector<double>> all;
  std::vector<Tensor> moved = arguments;
  for (Tensor& argument : moved) {
    std::vector<double> slopes;
    for (int64_t i = 0; argument.isFloat() && i < argument.size(); ++i) {
      const double at = argument.getFloat(i);
      argument.setFloat(i, at + test.step);
      const double above = argument.getFloat(i),
                   after = loss(function, moved, weights);
      argument.setFloat(i, at - test.step);
      const double below = argument.getFloat(i),
                   before = loss(function, moved, weights);
      argument.setFloat(i, at);
      slopes.push_back((after - before) / (above - below));
    }
    all.push_back(slopes);
  }
  return all;
}

void GradientFixture::checkCase(const Case& test, unsigned seed) {
  SCOPED_TRACE(testing::Message() << test << "\nseed " << seed);
  generator_.seed(seed);
  const std::vector<Tensor> arguments = argumentsOf(test),
                            weights = weightsOf(test);
  const auto expected = differences(test, arguments, weights);
  std::vector<size_t> floats;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].isFloat()) floats.push_back(i);
  }
  for (unsigned subset = 1; subset < 1u << floats.size(); ++subset) {
    SCOPED_TRACE(testing::Message() << "wanted " << subset);
    std::vector<bool> wanted(arguments.size());
    for (size_t i = 0; i < floats.size(); ++i)
      wanted[floats[i]] = subset >> i & 1;
    const auto found = gradients(test, arguments, weights, wanted);
    ASSERT_EQ(found.size(), arguments.size());
    for (size_t i : floats) {
      SCOPED_TRACE(testing::Message() << "argument " << i);
      if (wanted[i]) expectNear(found[i], expected[i], test.tolerance);
    }
  }
}

void expectNear(const std::vector<double>& found,
                const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const bool near = found[i] == expected[i] ||
                      (std::isnan(found[i]) && std::isnan(expected[i])) ||
                      std::abs(found[i] - expected[i]) <=
                          tolerance * std::max(1.0, std::abs(expected[i]));
    ASSERT_TRUE(near) << "element " << i << ": expected " << expected[i]
                      << ", found " << found[i];
  }
}

}  // namespace partita::autodiff
