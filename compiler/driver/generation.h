// Compiles a model that generates text: a folder with one artifact for tokens,
// artifacts for prompts of several lengths, and generation.json, which
// runtime/generate reads.
#ifndef PARTITA_COMPILER_DRIVER_GENERATION_H_
#define PARTITA_COMPILER_DRIVER_GENERATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/compile_options.h"
#include "compiler/driver/import_model.h"
#include "compiler/driver/run_phase.h"

namespace partita::driver {

struct GenerationOptions {
  std::string model;  // a Hugging Face folder or a family's name
  ImportOptions import;
  CompileOptions compile;  // its output is ignored
  int64_t rows = 1;        // texts at a time
  // Tokens of a text, prompt included; absent: 1024, or as many positions as
  // the model has if those are fewer.
  std::optional<int64_t> length;
  // Keys and values are integers of 8 bits; else f32.
  bool is_int8_cache = false;
  std::string folder;  // to write
};

// Creates the folder and compiles into it; removes prompt programs of an
// earlier compilation. Refuses the model's own folder and plans that divide B.
// Emits diagnostics on failure; `fault` says whose fault it is.
mlir::LogicalResult compileGeneration(const GenerationOptions& options,
                                      Fault& fault);

// The lengths of prompts for which a model with a cache of `length` tokens is
// compiled, ascending. The last one is `length`.
std::vector<int64_t> promptLengths(int64_t length);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_GENERATION_H_
