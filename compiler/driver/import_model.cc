// Chooses the frontend by what the path is.
#include "compiler/driver/import_model.h"

#include <charconv>
#include <filesystem>

#include "frontends/huggingface/huggingface.h"
#include "frontends/onnx/importer.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

namespace partita::driver {

mlir::OwningOpRef<mlir::ModuleOp> importModel(const std::string& model,
                                              const ImportOptions& options,
                                              mlir::MLIRContext* context) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(model, error);
  if (fs::is_directory(status)) {
    huggingface::HfOptions hf;
    hf.dims = options.dims;
    hf.seed = options.seed;
    return huggingface::importHuggingFace(model, hf, context);
  }
  llvm::StringRef name(model);
  if (fs::exists(status)) {
    if (name.ends_with(".mlir"))
      return mlir::parseSourceFile<mlir::ModuleOp>(model, context);
    if (name.ends_with(".onnx")) {
      onnx::ImportOptions onnx_options;
      onnx_options.dims = options.dims;
      onnx_options.input_shapes = options.input_shapes;
      return onnx::importOnnx(model, onnx_options, context);
    }
    mlir::emitError(mlir::UnknownLoc::get(context))
        << "expected a model (.onnx or .mlir file, or a folder with "
           "config.json), found "
        << model;
    return nullptr;
  }
  if (name.contains('/') || name.ends_with(".onnx") ||
      name.ends_with(".mlir")) {
    mlir::emitError(mlir::UnknownLoc::get(context))
        << "no file or folder named " << model;
    return nullptr;
  }
  huggingface::HfOptions hf;
  hf.dims = options.dims;
  hf.seed = options.seed;
  return huggingface::importFamily(model, hf, context);
}

bool parseDims(const std::string& text, std::map<std::string, int64_t>& dims,
               std::string& error) {
  llvm::SmallVector<llvm::StringRef> entries;
  llvm::StringRef(text).split(entries, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef entry : entries) {
    auto [name, value] = entry.split('=');
    int64_t size = 0;
    if (name.empty() || value.getAsInteger(10, size) || size <= 0) {
      error =
          "expected --dim name=size with a positive size, as in --dim "
          "batch=8,seq=128; found '" +
          entry.str() + "'";
      return false;
    }
    dims[name.str()] = size;
  }
  return true;
}

}  // namespace partita::driver
