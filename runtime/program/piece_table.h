// The parameter of a GPU kernel that runs on several pieces (Launch in
// program.fbs): a table by value, with a word of 8 bytes per number or address.
//
//   ends[n]         items of pieces 0 .. i together; pieces that do not exist
//                   have none
//   buffers[n][k]   the inputs and then the outputs of each piece
//
// k is the number of operands of a piece, and n is PiecesOfTable(k).
#ifndef PARTITA_RUNTIME_PROGRAM_PIECE_TABLE_H_
#define PARTITA_RUNTIME_PROGRAM_PIECE_TABLE_H_

#include <cstdint>
#include <vector>

namespace partita::program {

// Bytes of all parameters of a kernel that every driver accepts.
inline constexpr int64_t kPieceTableBytes = 4096;

// Maximum number of pieces of a launch.
inline constexpr int64_t PiecesOfTable(int64_t operands) {
  return kPieceTableBytes / (8 * (operands + 1));
}

// Requires at most PiecesOfTable pieces. `buffers` lists the inputs of all
// pieces and then the outputs of all pieces, `count` in total; `outputs` is per
// piece.
inline std::vector<uint64_t> PieceTable(const std::vector<int64_t>& ranges,
                                        int64_t outputs, void* const* buffers,
                                        int64_t count) {
  const auto pieces = static_cast<int64_t>(ranges.size());
  const int64_t operands = count / pieces, inputs = operands - outputs;
  const int64_t most = PiecesOfTable(operands);
  std::vector<uint64_t> words(static_cast<size_t>(most * (operands + 1)));
  uint64_t end = 0;
  uint64_t* next = words.data();
  for (int64_t i = 0; i < most; ++i)
    *next++ = end +=
        i < pieces ? static_cast<uint64_t>(ranges[static_cast<size_t>(i)]) : 0;
  const auto add = [&](void* const* from, int64_t number) {
    for (int64_t i = 0; i < number; ++i)
      *next++ = reinterpret_cast<uint64_t>(from[i]);
  };
  for (int64_t i = 0; i < pieces; ++i) {
    add(buffers + i * inputs, inputs);
    add(buffers + pieces * inputs + i * outputs, outputs);
  }
  return words;
}

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_PIECE_TABLE_H_
