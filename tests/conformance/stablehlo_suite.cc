// Runs programs of StableHLO: import, execute, compare.
#include "tests/conformance/stablehlo_suite.h"

#include <cmath>

#include "dialects/nn/dialect.h"
#include "frontends/stablehlo/importer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/base/dtype.h"
#include "runtime/base/safetensors.h"

namespace partita::conformance {
namespace {

struct Stored {
  base::SafetensorsEntry entry;
  std::string_view bytes;
};

struct Program {
  std::string_view bytecode;
  std::map<size_t, Stored> inputs, outputs;
};

// By name. Keys are "NAME|program", "NAME|in.NUMBER" and "NAME|out.NUMBER";
// others are ignored.
std::map<std::string, Program> programsOf(const base::SafetensorsFile& file) {
  std::map<std::string, Program> programs;
  for (const auto& [key, entry] : file.header().tensors) {
    const auto [name, part] = llvm::StringRef(key).rsplit('|');
    const Stored stored = {entry, file.BytesOf(entry)};
    const auto [side, number] = part.split('.');
    size_t index = 0;
    if (part == "program") {
      programs[name.str()].bytecode = stored.bytes;
    } else if ((side == "in" || side == "out") &&
               llvm::to_integer(number, index)) {
      Program& program = programs[name.str()];
      (side == "in" ? program.inputs : program.outputs)[index] = stored;
    }
  }
  return programs;
}

struct Type {
  mlir::RankedTensorType type;  // null if nn lacks the element type
  bool is_unsigned = false;
};

Type typeOf(const base::SafetensorsEntry& entry, mlir::MLIRContext* context) {
  if (!entry.dtype) return {};
  const llvm::StringRef name = base::NameOf(*entry.dtype);
  mlir::Type element;
  unsigned width = 0;
  if (name == "bf16")
    element = mlir::BFloat16Type::get(context);
  else if (!name.drop_front().getAsInteger(10, width) && name[0] != 'f')
    element = mlir::IntegerType::get(context, width);
  else if (width == 16)
    element = mlir::Float16Type::get(context);
  else if (width == 32)
    element = mlir::Float32Type::get(context);
  else
    element = mlir::Float64Type::get(context);
  return {mlir::RankedTensorType::get(entry.shape, element), name[0] == 'u'};
}

// What a few roundings of the type, or of a wider one, may change.
double relativeLimit(mlir::Type element) {
  if (element.isBF16()) return 1.6e-2;
  if (element.isF16()) return 2e-3;
  return element.isF32() ? 2e-5 : 1e-11;
}

// Sums of terms that cancel are no more exact than a rounding of their terms.
bool addsUp(mlir::ModuleOp module) {
  return module
      .walk([](mlir::Operation* op) {
        return mlir::isa<nn::DotGeneralOp, nn::ConvOp, nn::ReduceOp,
                         nn::ReduceWindowOp, nn::ScatterOp>(op)
                   ? mlir::WalkResult::interrupt()
                   : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

// Returns the first difference; empty if there is none. Integers must be equal.
// A float may differ by a few roundings of itself and, with `adds_up`, by one
// of the largest element. Without it, near a root of a function, by one of 1.
std::string compare(const nn::Tensor& found, const nn::Tensor& expected,
                    bool adds_up) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (found.type() != expected.type()) {
    out << "expected " << expected.type() << ", found " << found.type();
    return text;
  }
  const mlir::Type element = expected.type().getElementType();
  const double limit = relativeLimit(element);
  double largest = 0;
  for (int64_t i = 0; expected.isFloat() && i < expected.size(); ++i)
    if (std::isfinite(expected.getFloat(i)))
      largest = std::max(largest, std::abs(expected.getFloat(i)));
  const double near_root = limit / 20 * std::min(largest, 1.0);
  const double absolute = adds_up ? limit / 4 * largest : near_root;
  int64_t wrong = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    bool fits;
    if (expected.isFloat()) {
      const double a = found.getFloat(i), b = expected.getFloat(i);
      fits = a == b || (std::isnan(a) && std::isnan(b));
      if (std::isfinite(a) && std::isfinite(b))
        fits = std::abs(a - b) <= limit * std::abs(b) + absolute;
    } else {
      fits = found.getInt(i) == expected.getInt(i);
    }
    if (fits || ++wrong > 1) continue;
    out << "element " << i << ": expected ";
    if (expected.isFloat())
      out << expected.getFloat(i) << ", found " << found.getFloat(i);
    else
      out << expected.getInt(i) << ", found " << found.getInt(i);
  }
  if (wrong) out << "; " << wrong << " of " << expected.size() << " differ";
  return text;
}

// What an error of the importer says is not supported; nothing if it is about
// something else.
std::vector<std::string> unsupportedIn(llvm::StringRef errors) {
  std::vector<std::string> names;
  llvm::StringRef line;
  bool lists = false;
  while (!errors.empty()) {
    std::tie(line, errors) = errors.split('\n');
    if (lists && line.consume_front("  ")) {
      names.push_back(line.split(',').first.str());
    } else if (line.contains("operations that are not supported")) {
      lists = true;
    } else if (line.contains("not supported")) {
      names.push_back(line.str());
    } else if (line.contains("expected a tensor of booleans, of integers")) {
      names.push_back("type " +
                      line.split(" is ").second.split(':').first.str());
    }
  }
  return names;
}

class Run {
 public:
  explicit Run(const std::string& name)
      : context_(mlir::MLIRContext::Threading::DISABLED) {
    result_.name = name;
    mlir::DialectRegistry registry;
    registry.insert<nn::NNDialect>();
    nn::registerExternalModels(registry);
    context_.appendDialectRegistry(registry);
    context_.getDiagEngine().registerHandler([this](mlir::Diagnostic& d) {
      if (d.getSeverity() == mlir::DiagnosticSeverity::Error)
        llvm::raw_string_ostream(errors_) << d << "\n";
    });
  }

  TestResult run(const Program& program, const Executor& executor,
                 const SuiteOptions& options) {
    auto module = stablehlo::importStablehloBytes(program.bytecode,
                                                  result_.name, {}, &context_);
    if (!module) {
      result_.unsupported = unsupportedIn(errors_);
      return result_.unsupported.empty() ? fail("not imported") : skip();
    }
    auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
    if (main.getNumArguments() != program.inputs.size())
      return fail("another number of inputs");
    std::vector<nn::Tensor> arguments;
    for (const auto& [i, stored] : program.inputs) {
      const Type type = typeOf(stored.entry, &context_);
      if (!type.type || type.type != main.getArgumentTypes()[i])
        return fail("input " + std::to_string(i) + " is of another type");
      arguments.push_back(*nn::Tensor::fromBytes(type.type, stored.bytes));
    }
    if (options.lacks) result_.unsupported = options.lacks(*module);
    if (!result_.unsupported.empty()) return skip();
    const bool adds_up = addsUp(*module);
    auto results = executor(*module, arguments);
    if (mlir::failed(results)) return fail("not executed");
    if (results->size() != program.outputs.size())
      return fail("another number of results");
    for (const auto& [i, stored] : program.outputs) {
      const Type type = typeOf(stored.entry, &context_);
      if (!type.type) return fail("a result of a type that nn lacks");
      const bool is_unsigned = main.getResultAttr(static_cast<unsigned>(i),
                                                  nn::kUnsignedAttr) != nullptr;
      std::string difference =
          compare((*results)[i],
                  *nn::Tensor::fromBytes(type.type, stored.bytes), adds_up);
      if (difference.empty() && is_unsigned != type.is_unsigned)
        difference = "another signedness";
      if (!difference.empty())
        return fail("result " + std::to_string(i) + ": " + difference);
    }
    return result_;
  }

 private:
  TestResult fail(const std::string& message) {
    result_.outcome = Outcome::kFailed;
    result_.message = message + (errors_.empty() ? "" : "\n" + errors_);
    return result_;
  }
  TestResult skip() {
    result_.outcome = Outcome::kSkipped;
    return result_;
  }

  mlir::MLIRContext context_;
  std::string errors_;
  TestResult result_;
};

}  // namespace

absl::StatusOr<Summary> runStablehloSuite(const std::string& path,
                                          const Executor& executor,
                                          const SuiteOptions& options) {
  auto file = base::SafetensorsFile::Open(path);
  if (!file.ok()) return file.status();
  Summary summary;
  for (const auto& [name, program] : programsOf(*file))
    if (name.find(options.filter) != std::string::npos)
      summary.add(Run(name).run(program, executor, options));
  return summary;
}

}  // namespace partita::conformance
