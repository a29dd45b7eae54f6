// Opens any source from its text on the command line.
#ifndef PARTITA_RUNTIME_DATA_OPEN_SOURCE_H_
#define PARTITA_RUNTIME_DATA_OPEN_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/batch_source.h"
#include "runtime/data/order.h"

namespace partita::data {

struct SourceOptions {
  OrderOptions order;
  RowRange rows;
  // Exclusive upper bound for token ids and labels; 0: unknown.
  int64_t vocabulary = 0;
  // Part of a token file (see TokenOptions).
  double from = 0;
  double to = 1;
  // For images (see ArrayOptions).
  double mean = 0;
  double deviation = 1;
};

// `text` is one of
//   FILE.bin                  token ids of 16 bits      (u16:FILE also)
//   u32:FILE                  token ids of 32 bits
//   FILE.txt                  text, a token per byte    (text:FILE also)
//   FOLDER, FILE.safetensors  named batches
//   INPUT=FILE,INPUT=FILE...  arrays, IDX or .npy, for the inputs named
//   ...-images-idx3-ubyte     images, with the labels that lie beside them in
//                             ...-labels-idx1-ubyte for "targets"
// `specs` are the program's data inputs, global.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenSource(
    const std::string& text, const std::vector<base::TensorSpec>& specs,
    const SourceOptions& options);

// The list above, for --help.
const char* SourceHelp();

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_OPEN_SOURCE_H_
