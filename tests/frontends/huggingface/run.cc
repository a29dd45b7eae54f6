// Loads arguments of @main like the runtime, and interprets it.
#include "tests/frontends/huggingface/run.h"

#include <gtest/gtest.h>

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "runtime/base/dtype.h"
#include "runtime/base/mapped_file.h"

namespace partita::huggingface {
namespace {

mlir::RankedTensorType typeOf(const base::SafetensorsEntry& entry,
                              mlir::MLIRContext* context) {
  const bool integer = entry.dtype == base::DType::kI64;
  EXPECT_TRUE(integer || entry.dtype == base::DType::kF32) << entry.stored;
  const mlir::Type element =
      integer ? mlir::Type(mlir::IntegerType::get(context, 64))
              : mlir::Float32Type::get(context);
  return mlir::RankedTensorType::get(entry.shape, element);
}

// The bytes of a #nn.file, converted to f32.
nn::Tensor readWeight(nn::FileAttr file, mlir::RankedTensorType type) {
  auto mapped = base::MappedFile::Open(file.getPath().str());
  EXPECT_TRUE(mapped.ok()) << file.getPath().str();
  const std::string_view bytes =
      mapped->bytes().substr(file.getOffset(), file.getBytes());
  const auto stored =
      mlir::RankedTensorType::get(type.getShape(), file.getStored());
  mlir::FailureOr<nn::Tensor> tensor = nn::Tensor::fromBytes(
      stored, llvm::ArrayRef<char>(bytes.data(), bytes.size()));
  EXPECT_TRUE(succeeded(tensor));
  nn::Tensor result(type);
  for (int64_t i = 0; i < result.size(); ++i)
    result.setFloat(i, tensor->getFloat(i));
  return result;
}

// A tensor whose parts along the first dimension lie in different places.
nn::Tensor readParts(mlir::ArrayAttr files, mlir::RankedTensorType type) {
  EXPECT_EQ(static_cast<int64_t>(files.size()), type.getDimSize(0));
  nn::Tensor whole(type);
  int64_t next = 0;
  for (auto file : files.getAsRange<nn::FileAttr>()) {
    const nn::Tensor part = readWeight(
        file, mlir::RankedTensorType::get(type.getShape().drop_front(),
                                          type.getElementType()));
    for (int64_t i = 0; i < part.size(); ++i)
      whole.setFloat(next++, part.getFloat(i));
  }
  return whole;
}

mlir::DialectRegistry registry() {
  mlir::DialectRegistry registry;
  registry.insert<nn::NNDialect, mlir::func::FuncDialect,
                  mlir::arith::ArithDialect, mlir::math::MathDialect>();
  nn::registerExternalModels(registry);
  return registry;
}

}  // namespace

nn::Tensor readTensor(const base::SafetensorsFile& file,
                      const std::string& name, mlir::MLIRContext* context) {
  const auto place = file.header().tensors.find(name);
  if (place == file.header().tensors.end()) {
    ADD_FAILURE() << file.path() << " has no tensor " << name;
    return nn::Tensor(
        mlir::RankedTensorType::get({}, mlir::Float32Type::get(context)));
  }
  const std::string_view bytes = file.BytesOf(place->second);
  mlir::FailureOr<nn::Tensor> tensor =
      nn::Tensor::fromBytes(typeOf(place->second, context),
                            llvm::ArrayRef<char>(bytes.data(), bytes.size()));
  EXPECT_TRUE(succeeded(tensor)) << name;
  return *tensor;
}

Runner::Runner()
    : context_(registry(), mlir::MLIRContext::Threading::DISABLED) {
  context_.getDiagEngine().registerHandler([this](
                                               mlir::Diagnostic& diagnostic) {
    diagnostics_ += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error
                        ? "error: "
                        : "remark: ";
    diagnostics_ += diagnostic.str() + "\n";
  });
}

std::vector<nn::Tensor> Runner::run(
    mlir::ModuleOp module,
    const std::function<nn::Tensor(const std::string&)>& input,
    const std::function<void(nn::Tensor&, const std::string&)>& seeded) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<nn::Tensor> arguments;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    const std::string name =
        main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr).str();
    const auto type =
        mlir::cast<mlir::RankedTensorType>(main.getArgumentTypes()[i]);
    const mlir::Attribute source = main.getArgAttr(i, nn::kSourceAttr);
    if (!source) {
      arguments.push_back(input(name));
    } else if (auto file = mlir::dyn_cast<nn::FileAttr>(source)) {
      arguments.push_back(readWeight(file, type));
    } else if (auto parts = mlir::dyn_cast<mlir::ArrayAttr>(source)) {
      arguments.push_back(readParts(parts, type));
    } else {
      arguments.emplace_back(type);
      seeded(arguments.back(), name);
    }
  }
  auto results = nn::interpret(main, arguments);
  if (failed(results)) return {};
  return std::vector<nn::Tensor>(results->begin(), results->end());
}

}  // namespace partita::huggingface
