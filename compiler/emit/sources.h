// Sources of parameters, in the artifact's format.
#ifndef PARTITA_COMPILER_EMIT_SOURCES_H_
#define PARTITA_COMPILER_EMIT_SOURCES_H_

#include <string>

#include "compiler/emit/emit.h"

namespace partita::emit {

// Translates an `nn.source`; copies the bytes into `data` if
// options.embed_weights. Emits a diagnostic at `loc` if the file cannot be read
// or is too short.
mlir::FailureOr<program::SourceUnion> sourceOf(mlir::Location loc,
                                               const std::string& name,
                                               mlir::Attribute source,
                                               const EmitOptions& options,
                                               program::DataSection& data);

// The source of a coordinate: the device's index along `axes`, which is an
// `nn.axes`.
mlir::FailureOr<program::SourceUnion> coordinateSource(mlir::Location loc,
                                                       const std::string& name,
                                                       mlir::Attribute axes);

}  // namespace partita::emit

#endif  // PARTITA_COMPILER_EMIT_SOURCES_H_
