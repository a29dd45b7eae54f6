// Opens and parses the file, then builds @main from its graph.
#include "frontends/onnx/importer.h"

#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "frontends/onnx/graph_importer.h"
#include "llvm/Support/MemoryBuffer.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

namespace partita::onnx {

mlir::OwningOpRef<mlir::ModuleOp> importOnnx(const std::string& path,
                                             const ImportOptions& options,
                                             mlir::MLIRContext* context,
                                             ImportReport* report) {
  // Large files are mapped; weights are read when the model runs.
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) {
    mlir::emitError(mlir::FileLineColLoc::get(context, path, 0, 0))
        << "cannot open '" << path << "': " << buffer.getError().message();
    return {};
  }
  std::string_view bytes((*buffer)->getBufferStart(),
                         (*buffer)->getBufferSize());
  return importOnnxBytes(bytes, path, options, context, report);
}

mlir::OwningOpRef<mlir::ModuleOp> importOnnxBytes(std::string_view bytes,
                                                  const std::string& path,
                                                  const ImportOptions& options,
                                                  mlir::MLIRContext* context,
                                                  ImportReport* report) {
  context
      ->loadDialect<nn::NNDialect, dist::DistDialect, mlir::arith::ArithDialect,
                    mlir::math::MathDialect, mlir::func::FuncDialect>();
  mlir::Location loc = mlir::FileLineColLoc::get(context, path, 0, 0);
  Model model;
  WireError error;
  if (!parseModel(bytes, model, error)) {
    mlir::emitError(loc) << "not an ONNX model, " << error.str();
    return {};
  }
  ImportReport unread;
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module->getBody());
  auto main = mlir::func::FuncOp::create(builder, loc, "main",
                                         builder.getFunctionType({}, {}));
  DataFiles files(path, bytes);
  GraphImporter importer(model, files, options, report ? *report : unread,
                         main);
  if (mlir::failed(importer.run()) || mlir::failed(mlir::verify(*module))) {
    return {};
  }
  return module;
}

}  // namespace partita::onnx
