// Translates nn.source attributes, and checks that their files have the bytes.
#include "compiler/emit/sources.h"

#include <filesystem>
#include <system_error>

#include "compiler/emit/function_emitter.h"
#include "compiler/emit/placement.h"
#include "dialects/nn/dialect.h"

namespace partita::emit {
namespace {

namespace fs = std::filesystem;

mlir::FailureOr<program::SourceUnion> fileSource(mlir::Location loc,
                                                 const std::string& name,
                                                 nn::FileAttr file,
                                                 const EmitOptions& options,
                                                 program::DataSection& data) {
  fs::path path(file.getPath().str());
  if (path.is_relative()) path = fs::path(options.source_folder) / path;
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (error)
    return mlir::emitError(loc)
               << "expected the weights of '" << name << "' in "
               << path.string() << ", found: " << error.message(),
           mlir::failure();
  if (file.getOffset() > size || file.getBytes() > size - file.getOffset())
    return mlir::emitError(loc)
               << "expected bytes " << file.getOffset() << " to "
               << file.getOffset() + file.getBytes() << " of " << path.string()
               << " to hold '" << name << "', found a file of " << size
               << " bytes",
           mlir::failure();
  program::SourceUnion source;
  const program::DType stored = dtypeOf(file.getStored(), false);
  if (options.embed_weights) {
    auto mapped = base::MappedFile::Open(path.string());
    if (!mapped.ok())
      return mlir::emitError(loc) << std::string(mapped.status().message()),
             mlir::failure();
    program::EmbeddedSourceT embedded;
    embedded.offset =
        data.AddFromFile(std::make_shared<base::MappedFile>(std::move(*mapped)),
                         file.getOffset(), file.getBytes());
    embedded.bytes = file.getBytes();
    embedded.stored = stored;
    source.Set(std::move(embedded));
    return source;
  }
  program::FileSourceT result;
  fs::path absolute = fs::absolute(path).lexically_normal();
  fs::path relative = absolute.lexically_relative(
      fs::absolute(options.artifact_folder.empty() ? "."
                                                   : options.artifact_folder)
          .lexically_normal());
  // Weights beside or below the artifact have relative paths, so that both can
  // move together. Other weights have absolute paths.
  const bool beside = !relative.empty() && *relative.begin() != "..";
  result.path = beside ? relative.string() : absolute.string();
  result.offset = file.getOffset();
  result.bytes = file.getBytes();
  result.stored = stored;
  source.Set(std::move(result));
  return source;
}

}  // namespace

mlir::FailureOr<program::SourceUnion> sourceOf(mlir::Location loc,
                                               const std::string& name,
                                               mlir::Attribute attribute,
                                               const EmitOptions& options,
                                               program::DataSection& data) {
  if (auto file = llvm::dyn_cast_or_null<nn::FileAttr>(attribute))
    return fileSource(loc, name, file, options, data);
  if (auto init = llvm::dyn_cast_or_null<nn::InitAttr>(attribute)) {
    program::SeedSourceT seed;
    seed.kind = init.getKind().str();
    seed.scale = init.getScale().getValueAsDouble();
    seed.seed = init.getSeed();
    program::SourceUnion source;
    source.Set(std::move(seed));
    return source;
  }
  return mlir::emitError(loc) << "expected parameter '" << name
                              << "' to have an nn.source, found none; give its "
                                 "numbers, as in nn.source = "
                                 "#nn.init<\"normal\", 2.0e-02 : f64, 7>",
         mlir::failure();
}

mlir::FailureOr<program::SourceUnion> coordinateSource(mlir::Location loc,
                                                       const std::string& name,
                                                       mlir::Attribute axes) {
  auto triples = llvm::dyn_cast_or_null<mlir::DenseI64ArrayAttr>(axes);
  if (!triples)
    return mlir::emitError(loc)
               << "expected coordinate '" << name << "' to have '"
               << nn::kAxesAttr << "', found none",
           mlir::failure();
  program::CoordinateSourceT coordinate;
  coordinate.axes = axisParts(triples.asArrayRef());
  program::SourceUnion source;
  source.Set(std::move(coordinate));
  return source;
}

}  // namespace partita::emit
