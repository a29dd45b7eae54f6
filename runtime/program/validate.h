// Semantic checks of a program, beyond what its schema says.
#ifndef PARTITA_RUNTIME_PROGRAM_VALIDATE_H_
#define PARTITA_RUNTIME_PROGRAM_VALIDATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/program/program_generated.h"

namespace partita::program {

// A program that passes can be executed without further checks. `program` has
// passed the flatbuffers verifier; `data_bytes` is the size of the data
// section, `has_code` whether there is a code section. Checked:
// - (V1) required fields are there, enums are known, shapes are not negative
//   and their bytes fit 63 bits;
// - (V2) every parameter's source lies in its section or is a known
//   distribution, and has the parameter's size; only states lie on the host;
// - (V3) indices of kernels, functions, parameters and globals are in range;
// - (V4) the call graph has no cycle, is at most kMaxCallDepth deep and runs at
//   most kMaxSteps instructions;
// - (V5) every operand lies inside its argument, frame or data section, and
//   callees' frames inside their caller's, and an output has at least the
//   bytes of its type;
// - (V6) only frames and result arguments are written;
// - (V7) operand counts and sizes suit each operation: strides and windows of
//   gemm and conv stay inside the operands, and so do tensor maps, whose sizes
//   are such that GPUs take them; pieces of a launch have equally many, and
//   ranges that sum up to the launch's;
// - (V8) the arguments of each entry's main and init match the inputs, globals,
//   outputs and updates they are called with;
// - (V9) the mesh has at most kMaxDevices devices, axes named exist and are
//   used once, shards fit their tensors, coordinates are single i64;
// - (V10) shapes of collectives follow from their kind and group;
// - (V11) inputs with a role have its type, and no two have the same;
// - (V12) each parameter is updated at most once, constants, coordinates and
//   what init reads never;
// - (V13) there are as many entries as devices along the pipeline, whose axes
//   no shard, coordinate and collective names; every input, output and
//   parameter is some entry's, and what one entry updates no other reads
//   without updating it too;
// - (V14) sends and receives of main meet each other, in order and with equal
//   types, and cannot wait in a circle;
// - (V15) each token is started once and awaited once, later in the same
//   function, at most kMaxStarted at a time, and in between nothing writes what
//   the started collective reads nor touches what it writes: operands, those of
//   calls, and callees' frames;
// - (V16) kernels' cycles are finite and not negative, and so are the rows of
//   entries' memory, of at most kMaxMemory bytes.
absl::Status ValidateProgram(const Program& program, int64_t data_bytes,
                             bool has_code);

inline constexpr int kMaxCallDepth = 64;
// Instructions of one pass over main, plus their operands.
inline constexpr int64_t kMaxSteps = int64_t{1} << 21;
// Operands and arguments of all functions together: bounds the time of checking
// a malicious file.
inline constexpr int64_t kMaxOperands = int64_t{1} << 24;
// Sends and receives of all entries together.
inline constexpr int64_t kMaxTransfers = int64_t{1} << 21;
// Collectives started and not awaited in a function.
inline constexpr int64_t kMaxStarted = 64;
// Of one piece of a launch with several.
inline constexpr int64_t kMaxPieceOperands = 64;
inline constexpr int64_t kMaxRank = 32;
// Bytes of each row of an entry's memory: their sum fits 63 bits.
inline constexpr int64_t kMaxMemory = int64_t{1} << 50;
inline constexpr int64_t kMaxDevices = int64_t{1} << 20;

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_H_
