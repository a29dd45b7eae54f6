// Opens and reads the archive, then builds @main from its program.
#include "frontends/torch/importer.h"

#include "dialects/nn/dialect.h"
#include "frontends/torch/graph_importer.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

namespace partita::torch {
namespace {

// Large files are mapped; weights are read when the model runs.
llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> openFile(
    const std::string& path) {
  return llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                     /*RequiresNullTerminator=*/false);
}

std::string_view bytesOf(const llvm::MemoryBuffer& buffer) {
  return {buffer.getBufferStart(), buffer.getBufferSize()};
}

}  // namespace

mlir::OwningOpRef<mlir::ModuleOp> importTorch(const std::string& path,
                                              const ImportOptions& options,
                                              mlir::MLIRContext* context) {
  auto buffer = openFile(path);
  if (!buffer) {
    mlir::emitError(mlir::FileLineColLoc::get(context, path, 0, 0))
        << "cannot open '" << path << "': " << buffer.getError().message();
    return {};
  }
  return importTorchBytes(bytesOf(**buffer), path, options, context);
}

mlir::OwningOpRef<mlir::ModuleOp> importTorchBytes(std::string_view bytes,
                                                   const std::string& path,
                                                   const ImportOptions& options,
                                                   mlir::MLIRContext* context) {
  context->loadDialect<nn::NNDialect, mlir::arith::ArithDialect,
                       mlir::math::MathDialect, mlir::func::FuncDialect>();
  mlir::Location loc = mlir::FileLineColLoc::get(context, path, 0, 0);
  Archive archive;
  Program program;
  std::string error;
  if (!archive.open(bytes, error) || !readArchive(archive, program, error)) {
    mlir::emitError(loc) << "not a .pt2 model: " << error;
    return {};
  }
  Symbols symbols(program);
  if (!symbols.bind(options.dims, options.input_shapes, error)) {
    mlir::emitError(loc) << error;
    return {};
  }
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module->getBody());
  auto main = mlir::func::FuncOp::create(builder, loc, "main",
                                         builder.getFunctionType({}, {}));
  GraphImporter importer(program, Weights(archive, program, path), symbols,
                         main);
  if (mlir::failed(importer.run()) || mlir::failed(mlir::verify(*module)))
    return {};
  if (auto outside = symbols.outsideRanges(); !outside.empty())
    mlir::emitRemark(loc) << "sizes outside the ranges of the export: "
                          << llvm::join(outside, ", ")
                          << "; the model's own code may have chosen another "
                             "way for them";
  return module;
}

std::vector<OpenDim> openDims(const std::string& path) {
  auto buffer = openFile(path);
  Archive archive;
  Program program;
  std::string error;
  if (!buffer || !archive.open(bytesOf(**buffer), error) ||
      !readArchive(archive, program, error))
    return {};
  return openDims(program);
}

}  // namespace partita::torch
