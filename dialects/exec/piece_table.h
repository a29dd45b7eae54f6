// The parameter of GPU code that runs on several lists of operands at once: a
// table by value.
//
//   int64 ends[n]           items of pieces 0 .. i together; pieces that do not
//                           exist have none
//   pointer buffers[n][k]   the operands and then the results of each piece
//
// k is the number of operands and results of a piece, and n is
// piecesOfTable(k).
#ifndef PARTITA_DIALECTS_EXEC_PIECE_TABLE_H_
#define PARTITA_DIALECTS_EXEC_PIECE_TABLE_H_

#include <cstdint>

namespace partita::exec {

// Bytes of all parameters of a kernel that every driver accepts.
inline constexpr int64_t kPieceTableBytes = 4096;

// Maximum number of pieces of a launch on a GPU.
inline constexpr int64_t piecesOfTable(int64_t buffers) {
  return kPieceTableBytes / (8 * (buffers + 1));
}

// Upper bound of a launch's blocks: several times the number that a large GPU
// holds at once. More blocks would only start later.
inline constexpr int64_t kMostBlocks = 132 * 16 * 4;

}  // namespace partita::exec

#endif  // PARTITA_DIALECTS_EXEC_PIECE_TABLE_H_
