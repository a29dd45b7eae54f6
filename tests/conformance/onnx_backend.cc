// Runs ONNX's own backend tests: import, execute, compare.
#include "tests/conformance/onnx_backend.h"

#include <cmath>
#include <filesystem>
#include <set>

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/model.h"
#include "frontends/onnx/tensor_data.h"
#include "llvm/Support/MemoryBuffer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

namespace partita::conformance {
namespace {

namespace fs = std::filesystem;
using llvm::failed;
using llvm::failure;
using llvm::FailureOr;

using Buffer = std::unique_ptr<llvm::MemoryBuffer>;

Buffer readFile(const std::string& path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, false, false);
  return buffer ? std::move(*buffer) : nullptr;
}

std::string_view bytesOf(const Buffer& buffer) {
  return {buffer->getBufferStart(), buffer->getBufferSize()};
}

struct Value {
  mlir::DenseElementsAttr attr;
  bool is_unsigned = false;
};

// The state of one running test.
struct Run {
  mlir::MLIRContext context;
  std::string errors;
  TestResult result;

  explicit Run(const std::string& name)
      : context(mlir::MLIRContext::Threading::DISABLED) {
    result.name = name;
    mlir::DialectRegistry registry;
    registry.insert<nn::NNDialect>();
    nn::registerExternalModels(registry);
    context.appendDialectRegistry(registry);
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic& d) {
      if (d.getSeverity() == mlir::DiagnosticSeverity::Error) {
        llvm::raw_string_ostream stream(errors);
        stream << d.getLocation() << ": " << d << "\n";
      }
    });
  }

  TestResult fail(const std::string& message) {
    result.outcome = Outcome::kFailed;
    result.message = message + (errors.empty() ? "" : "\n" + errors);
    return result;
  }

  FailureOr<Value> readTensor(const std::string& path) {
    Buffer buffer = readFile(path);
    onnx::TensorProto tensor;
    onnx::WireError error;
    if (!buffer || !onnx::parseTensor(bytesOf(buffer), tensor, error))
      return failure();
    std::string message;
    onnx::DataFiles files(path, bytesOf(buffer));
    auto attr = files.decode(tensor, &context, message);
    if (failed(attr)) return failure();
    return Value{*attr,
                 onnx::getElementType(tensor.type, &context).is_unsigned};
  }
};

// The names of the graph's inputs that are not initializers.
std::vector<std::string> inputNames(const std::string& path) {
  Buffer buffer = readFile(path);
  onnx::Model model;
  onnx::WireError error;
  std::vector<std::string> names;
  if (!buffer || !onnx::parseModel(bytesOf(buffer), model, error)) return names;
  std::set<std::string_view> initializers;
  for (const auto& tensor : model.graph.initializers)
    initializers.insert(tensor.name);
  for (const auto& input : model.graph.inputs)
    if (!initializers.count(input.name)) names.emplace_back(input.name);
  return names;
}

// Imports the model. If the importer asks for the values of inputs, supplies
// them as constants.
mlir::OwningOpRef<mlir::ModuleOp> import(
    Run& run, const std::string& model,
    const std::map<std::string, Value>& inputs) {
  onnx::ImportOptions options;
  for (const auto& [name, value] : inputs) {
    auto shape = value.attr.getType().getShape();
    options.input_shapes[name] = {shape.begin(), shape.end()};
  }
  while (true) {
    onnx::ImportReport report;
    run.errors.clear();
    auto module = onnx::importOnnx(model, options, &run.context, &report);
    if (module) return module;
    bool gave_more = false;
    for (const std::string& name : report.needs_constant_inputs) {
      auto value = inputs.find(name);
      if (value == inputs.end()) continue;
      gave_more |=
          options.constant_inputs.try_emplace(name, value->second.attr).second;
    }
    if (gave_more) continue;
    run.result.unsupported = report.unsupported;
    return {};
  }
}

bool isClose(double actual, double expected, const BackendOptions& options) {
  if (std::isnan(expected) || std::isnan(actual))
    return std::isnan(expected) && std::isnan(actual);
  if (std::isinf(expected) || std::isinf(actual)) return actual == expected;
  return std::abs(actual - expected) <=
         options.atol + options.rtol * std::abs(expected);
}

// Returns the first difference; empty if there is none.
std::string compare(const nn::Tensor& actual, const Value& expected,
                    const BackendOptions& options) {
  std::string text;
  llvm::raw_string_ostream out(text);
  nn::Tensor wanted = nn::Tensor::fromAttr(expected.attr);
  if (actual.type() != wanted.type()) {
    out << "expected " << wanted.type() << ", found " << actual.type();
    return text;
  }
  int64_t wrong = 0;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    bool fits = wanted.isFloat()
                    ? isClose(actual.getFloat(i), wanted.getFloat(i), options)
                    : actual.getInt(i) == wanted.getInt(i);
    if (fits || ++wrong > 1) continue;
    out << "element " << i << ": expected ";
    if (wanted.isFloat())
      out << wanted.getFloat(i) << ", found " << actual.getFloat(i);
    else
      out << wanted.getInt(i) << ", found " << actual.getInt(i);
  }
  if (wrong) out << "; " << wrong << " of " << wanted.size() << " differ";
  return text;
}

TestResult runModel(Run& run, const std::string& model,
                    const std::map<std::string, Value>& inputs,
                    const std::vector<Value>& expected,
                    const Executor& executor, const BackendOptions& options) {
  auto module = import(run, model, inputs);
  if (!module) {
    if (run.result.unsupported.empty()) return run.fail("not imported");
    run.result.outcome = Outcome::kSkipped;
    return run.result;
  }
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<nn::Tensor> arguments;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    if (main.getArgAttr(i, nn::kSourceAttr)) continue;
    if (main.getArgAttr(i, nn::kRoleAttr)) {
      // The expected values come from another generator.
      run.result.unsupported = {"random numbers"};
      run.result.outcome = Outcome::kSkipped;
      return run.result;
    }
    auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    auto value = inputs.find(name.str());
    if (value == inputs.end()) return run.fail("no value for " + name.str());
    if (value->second.attr.getType() != main.getArgumentTypes()[i])
      return run.fail("the value for " + name.str() + " is of another type");
    arguments.push_back(nn::Tensor::fromAttr(value->second.attr));
  }
  if (options.lacks) {
    run.result.unsupported = options.lacks(*module);
    if (!run.result.unsupported.empty()) {
      run.result.outcome = Outcome::kSkipped;
      return run.result;
    }
  }
  auto results = executor(*module, arguments);
  if (failed(results)) return run.fail("not executed");
  if (results->size() < expected.size()) return run.fail("too few outputs");
  for (size_t i = 0; i < expected.size(); ++i) {
    std::string difference = compare((*results)[i], expected[i], options);
    if (main.getResultAttr(i, nn::kUnsignedAttr) && !expected[i].is_unsigned)
      difference = "expected a signed type";
    if (!main.getResultAttr(i, nn::kUnsignedAttr) && expected[i].is_unsigned)
      difference = "expected an unsigned type";
    if (!difference.empty())
      return run.fail("output " + std::to_string(i) + ": " + difference);
  }
  return run.result;
}

// Reads the test's data. Returns the reason if it cannot be read; the importer
// finds unsupported types first.
bool readDataSet(Run& run, const fs::path& folder,
                 const std::vector<std::string>& names,
                 std::map<std::string, Value>& inputs,
                 std::vector<Value>& outputs) {
  for (size_t i = 0; i < names.size(); ++i) {
    fs::path path = folder / ("input_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) break;
    auto value = run.readTensor(path);
    if (!failed(value)) inputs[names[i]] = *value;
  }
  for (size_t i = 0;; ++i) {
    fs::path path = folder / ("output_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return true;
    auto value = run.readTensor(path);
    if (failed(value)) return false;
    outputs.push_back(*value);
  }
}

}  // namespace

Executor interpreterExecutor() {
  return [](mlir::ModuleOp module, llvm::ArrayRef<nn::Tensor> inputs)
             -> FailureOr<std::vector<nn::Tensor>> {
    auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
    std::vector<nn::Tensor> arguments;
    size_t next = 0;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      auto source = main.getArgAttrOfType<nn::FileAttr>(i, nn::kSourceAttr);
      if (!source) {
        arguments.push_back(inputs[next++]);
        continue;
      }
      auto buffer = llvm::MemoryBuffer::getFileSlice(
          source.getPath(), source.getBytes(), source.getOffset());
      if (!buffer)
        return main.emitError("cannot read ") << source.getPath().str();
      auto type =
          mlir::cast<mlir::RankedTensorType>(main.getArgumentTypes()[i]);
      auto tensor = nn::Tensor::fromBytes(
          type, llvm::ArrayRef((*buffer)->getBufferStart(),
                               (*buffer)->getBufferSize()));
      if (failed(tensor)) return main.emitError("wrong size of a weight");
      arguments.push_back(*tensor);
    }
    auto results = nn::interpret(main, arguments);
    if (failed(results)) return failure();
    return std::vector<nn::Tensor>(results->begin(), results->end());
  };
}

void Summary::add(const TestResult& result) {
  switch (result.outcome) {
    case Outcome::kPassed:
      ++passed;
      break;
    case Outcome::kFailed:
      ++failed;
      failures.push_back(result);
      break;
    case Outcome::kSkipped:
      ++skipped;
      for (const std::string& name : std::set<std::string>(
               result.unsupported.begin(), result.unsupported.end()))
        ++skipped_for[name];
      break;
  }
}

void Summary::print(std::ostream& out) const {
  for (const TestResult& failure : failures)
    out << "FAILED " << failure.name << ": " << failure.message << "\n";
  if (!skipped_for.empty()) out << "tests skipped, by what is not supported:\n";
  for (const auto& [name, count] : skipped_for)
    out << "  " << count << "  " << name << "\n";
  out << passed << " passed, " << failed << " failed, " << skipped
      << " skipped\n";
}

TestResult runBackendTest(const std::string& folder, const Executor& executor,
                          const BackendOptions& options) {
  std::string model = folder + "/model.onnx";
  std::vector<std::string> names = inputNames(model);
  TestResult last;
  for (int set = 0;; ++set) {
    fs::path data = fs::path(folder) / ("test_data_set_" + std::to_string(set));
    Run run(fs::path(folder).filename().string());
    if (!fs::exists(data))
      return set > 0 ? last : run.fail("no test_data_set_0");
    std::map<std::string, Value> inputs;
    std::vector<Value> expected;
    bool is_read = readDataSet(run, data, names, inputs, expected);
    last = runModel(run, model, inputs, expected, executor, options);
    if (last.outcome == Outcome::kPassed && !is_read)
      return run.fail("cannot read the expected values");
    if (last.outcome != Outcome::kPassed) return last;
  }
}

Summary runBackendTests(const std::string& folder, const Executor& executor,
                        const BackendOptions& options) {
  std::set<std::string> tests;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    bool is_wanted = name.find(options.filter) != std::string::npos;
    if (is_wanted && fs::exists(entry.path() / "model.onnx"))
      tests.insert(entry.path().string());
  }
  Summary summary;
  for (const std::string& test : tests)
    summary.add(runBackendTest(test, executor, options));
  return summary;
}

TestResult runLightNetwork(const std::string& model, const Executor& executor,
                           const BackendOptions& options) {
  Run run(fs::path(model).stem().string());
  std::string stem =
      model.substr(0, model.size() - std::string(".onnx").size());
  auto expected = run.readTensor(stem + "_output_0.pb");
  if (failed(expected)) return run.fail("cannot read the expected values");
  Buffer buffer = readFile(model);
  onnx::Model parsed;
  onnx::WireError error;
  if (!buffer || !onnx::parseModel(bytesOf(buffer), parsed, error))
    return run.fail("cannot read the model");
  std::map<std::string, Value> inputs;
  for (const std::string& name : inputNames(model)) {
    for (const auto& input : parsed.graph.inputs) {
      if (input.name != name) continue;
      llvm::SmallVector<int64_t> shape;
      for (const auto& dim : input.shape) shape.push_back(dim.value);
      auto type = mlir::RankedTensorType::get(
          shape, mlir::Float32Type::get(&run.context));
      std::vector<float> values(type.getNumElements());
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(static_cast<double>(i) /
                                       static_cast<double>(values.size()));
      inputs[name] = {
          mlir::DenseElementsAttr::get(type, llvm::ArrayRef<float>(values))};
    }
  }
  return runModel(run, model, inputs, {*expected}, executor, options);
}

}  // namespace partita::conformance
