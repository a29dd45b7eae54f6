// Semantic checks of a program, beyond its schema.
#ifndef PARTITA_RUNTIME_PROGRAM_VALIDATE_H_
#define PARTITA_RUNTIME_PROGRAM_VALIDATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/program/program_generated.h"

namespace partita::program {

// A program that passes can be executed without further checks. `program` has
// passed the flatbuffers verifier, `data_bytes` is the size of the data
// section, and `has_code` tells if there is a code section. Checked:
// - (V1) required fields are present, enums are valid, shapes are not negative
//   and their bytes fit 63 bits;
// - (V2) every parameter's source is inside its section or is a known
//   distribution, and has the parameter's size; only states are in host memory;
// - (V3) indices of kernels, functions, parameters and globals are in range;
// - (V4) the call graph has no cycle, is at most kMaxCallDepth deep and runs at
//   most kMaxSteps instructions;
// - (V5) every operand is inside its argument, frame or data section, callees'
//   frames are inside their caller's, and an output has at least the bytes of
//   its type;
// - (V6) only frames and result arguments are written;
// - (V7) operand counts and sizes fit each operation: strides and windows of
//   gemm, grouped gemm and conv stay inside the operands; so do tensor maps,
//   whose sizes must be valid for GPUs, and the attention that a launch
//   describes; the pieces of a launch have equally many operands, and their
//   ranges add up to the launch's;
// - (V8) the arguments of each entry's main and init match the inputs, globals,
//   outputs and updates passed to them;
// - (V9) the mesh has at most kMaxDevices devices, named axes exist and are
//   used once, shards fit their tensors, coordinates are single i64;
// - (V10) shapes of collectives match their kind and group;
// - (V11) inputs with a role have its type, and no two have the same role;
// - (V12) each parameter is updated at most once; constants, coordinates and
//   parameters that init reads are never updated;
// - (V13) there is one entry per device along the pipeline; no shard,
//   coordinate or collective names the pipeline's axes; every input, output and
//   parameter belongs to an entry; if one entry updates a parameter, every
//   entry that reads it updates it too;
// - (V14) sends and receives of main match each other, in order and with equal
//   types, and cannot wait in a cycle;
// - (V15) each token is started once and awaited once, later in the same
//   function, with at most kMaxStarted in flight; in between, nothing writes
//   the collective's input, and nothing reads or writes its output, counting
//   operands, operands of calls, and callees' frames;
// - (V16) kernels' cycles are finite and not negative; the rows of entries'
//   memory are not negative and at most kMaxMemory bytes;
// - (V17) files of states have a folder, and buffers of at least 0 bytes;
// - (V18) the first operands of a call that repeats have the sizes of its
//   outputs, output 0 is one byte, and the results of an iteration are inside
//   the caller's frame; the program has one entry, and nothing within a loop
//   starts a collective without waiting for it.
absl::Status ValidateProgram(const Program& program, int64_t data_bytes,
                             bool has_code);

inline constexpr int kMaxCallDepth = 64;
// Instructions of one pass over main, plus their operands.
inline constexpr int64_t kMaxSteps = int64_t{1} << 21;
// Operands and arguments of all functions together; bounds the time to check a
// malicious file.
inline constexpr int64_t kMaxOperands = int64_t{1} << 24;
// Sends and receives of all entries together.
inline constexpr int64_t kMaxTransfers = int64_t{1} << 21;
// Collectives in flight at any point of a function.
inline constexpr int64_t kMaxStarted = 64;
// Operands of one piece of a launch with several pieces.
inline constexpr int64_t kMaxPieceOperands = 64;
inline constexpr int64_t kMaxRank = 32;
// Bytes of each row of an entry's memory, so that their sum fits 63 bits.
inline constexpr int64_t kMaxMemory = int64_t{1} << 50;
inline constexpr int64_t kMaxDevices = int64_t{1} << 20;

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_H_
