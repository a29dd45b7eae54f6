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

// The path of a file, which must have the attribute's bytes.
mlir::FailureOr<fs::path> checkedPath(mlir::Location loc,
                                      const std::string& name,
                                      nn::FileAttr file,
                                      const EmitOptions& options) {
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
  return path;
}

mlir::FailureOr<program::SourceUnion> embeddedSource(
    mlir::Location loc, const fs::path& path, nn::FileAttr file,
    program::DataSection& data) {
  auto mapped = base::MappedFile::Open(path.string());
  if (!mapped.ok())
    return mlir::emitError(loc) << std::string(mapped.status().message()),
           mlir::failure();
  program::EmbeddedSourceT embedded;
  embedded.offset =
      data.AddFromFile(std::make_shared<base::MappedFile>(std::move(*mapped)),
                       file.getOffset(), file.getBytes());
  embedded.bytes = file.getBytes();
  embedded.stored = dtypeOf(file.getStored(), false);
  program::SourceUnion source;
  source.Set(std::move(embedded));
  return source;
}

program::FileSourceT fileSource(const fs::path& path, nn::FileAttr file,
                                const EmitOptions& options) {
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
  result.stored = dtypeOf(file.getStored(), false);
  return result;
}

// The bytes of all parts as one stretch of the artifact.
mlir::FailureOr<program::SourceUnion> embeddedParts(
    mlir::Location loc, const std::string& name,
    llvm::ArrayRef<std::pair<fs::path, nn::FileAttr>> parts,
    program::DataSection& data) {
  std::string bytes;
  for (const auto& [path, file] : parts) {
    if (file.getStored() != parts.front().second.getStored())
      return mlir::emitError(loc)
                 << "expected one stored type for all parts of '" << name
                 << "' to embed them, found " << file.getStored() << " and "
                 << parts.front().second.getStored()
                 << "; compile without --embed-weights",
             mlir::failure();
    auto mapped = base::MappedFile::Open(path.string());
    if (!mapped.ok())
      return mlir::emitError(loc) << std::string(mapped.status().message()),
             mlir::failure();
    bytes += mapped->bytes().substr(file.getOffset(), file.getBytes());
  }
  program::EmbeddedSourceT embedded;
  embedded.bytes = bytes.size();
  embedded.offset = data.Add(std::move(bytes));
  embedded.stored = dtypeOf(parts.front().second.getStored(), false);
  program::SourceUnion source;
  source.Set(std::move(embedded));
  return source;
}

// The single stretch of a file that holds the parts one after the other, as
// checkpoints do; null if they lie otherwise.
nn::FileAttr joinParts(mlir::ArrayAttr parts) {
  auto joined = llvm::cast<nn::FileAttr>(parts[0]);
  for (mlir::Attribute part : parts.getValue().drop_front()) {
    auto next = llvm::cast<nn::FileAttr>(part);
    if (next.getPath() != joined.getPath() ||
        next.getStored() != joined.getStored() ||
        next.getOffset() != joined.getOffset() + joined.getBytes())
      return nullptr;
    joined = nn::FileAttr::get(
        parts.getContext(), joined.getPath(), joined.getOffset(),
        joined.getBytes() + next.getBytes(), joined.getStored());
  }
  return joined;
}

mlir::FailureOr<program::SourceUnion> partsSource(mlir::Location loc,
                                                  const std::string& name,
                                                  mlir::ArrayAttr attribute,
                                                  const EmitOptions& options,
                                                  program::DataSection& data) {
  llvm::SmallVector<std::pair<fs::path, nn::FileAttr>> parts;
  for (auto file : attribute.getAsRange<nn::FileAttr>()) {
    mlir::FailureOr<fs::path> path = checkedPath(loc, name, file, options);
    if (mlir::failed(path)) return mlir::failure();
    parts.emplace_back(std::move(*path), file);
  }
  if (options.embed_weights) return embeddedParts(loc, name, parts, data);
  program::PartsSourceT result;
  for (const auto& [path, file] : parts)
    result.parts.push_back(std::make_unique<program::FileSourceT>(
        fileSource(path, file, options)));
  program::SourceUnion source;
  source.Set(std::move(result));
  return source;
}

}  // namespace

mlir::FailureOr<program::SourceUnion> sourceOf(mlir::Location loc,
                                               const std::string& name,
                                               mlir::Attribute attribute,
                                               const EmitOptions& options,
                                               program::DataSection& data) {
  if (auto parts = llvm::dyn_cast_or_null<mlir::ArrayAttr>(attribute);
      parts && !parts.empty()) {
    attribute = joinParts(parts);
    if (!attribute) return partsSource(loc, name, parts, options, data);
  }
  if (auto file = llvm::dyn_cast_or_null<nn::FileAttr>(attribute)) {
    mlir::FailureOr<fs::path> path = checkedPath(loc, name, file, options);
    if (mlir::failed(path)) return mlir::failure();
    if (options.embed_weights) return embeddedSource(loc, *path, file, data);
    program::SourceUnion source;
    source.Set(fileSource(*path, file, options));
    return source;
  }
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
