// Converts the compiler's terms (dialects/terms) to values of the artifact's
// format (runtime/program/program.fbs), and back. Every value that passes the
// program's validation can be converted.
#ifndef PARTITA_COMPILER_FORMAT_FORMAT_H_
#define PARTITA_COMPILER_FORMAT_FORMAT_H_

#include "dialects/terms/activation.h"
#include "dialects/terms/collective_kind.h"
#include "dialects/terms/conv_direction.h"
#include "dialects/terms/reduction.h"
#include "runtime/program/program_generated.h"

namespace partita::format {

program::CollectiveKind ToFormat(terms::CollectiveKind kind);
terms::CollectiveKind FromFormat(program::CollectiveKind kind);

program::Reduction ToFormat(terms::Reduction reduction);
terms::Reduction FromFormat(program::Reduction reduction);

program::Activation ToFormat(terms::Activation activation);
terms::Activation FromFormat(program::Activation activation);

program::ConvDirection ToFormat(terms::ConvDirection direction);
terms::ConvDirection FromFormat(program::ConvDirection direction);

}  // namespace partita::format

#endif  // PARTITA_COMPILER_FORMAT_FORMAT_H_
