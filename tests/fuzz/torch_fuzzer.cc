// Fuzzes the reader of .pt2 files. Any bytes are refused with a message, or
// read into ranges inside them. Bytes that are no zip file are read as the JSON
// inside of one, since few mutations of a zip file reach its contents.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "frontends/torch/archive.h"
#include "frontends/torch/program.h"
#include "frontends/torch/symbols.h"

namespace {

namespace torch = partita::torch;

void Check(bool fine, const std::string& error) {
  if (fine == error.empty()) return;
  abort();
}

// Binds every open dimension and evaluates all sizes.
void Bind(const torch::Program& program) {
  torch::Symbols symbols(program);
  std::map<std::string, int64_t> dims;
  for (const torch::OpenDim& dim : torch::openDims(program)) {
    if (dim.names.empty() || dim.names.front().empty()) abort();
    dims.emplace(dim.names.front(), 3);
  }
  std::string error;
  Check(symbols.bind(dims, {}, error), error);
  for (const auto& [name, meta] : program.graph.tensors)
    for (const torch::SymInt& size : meta.sizes) symbols.evaluate(size);
  symbols.outsideRanges();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  torch::Archive archive;
  torch::Program program;
  std::string error;
  const bool is_zip = archive.open(file, error);
  Check(is_zip, error);
  if (is_zip) {
    for (const auto& [name, entry] : archive.entries())
      if (entry.offset > size || entry.size > size - entry.offset) abort();
    const bool read = torch::readArchive(archive, program, error);
    Check(read, error);
    if (read) Bind(program);
    return 0;
  }
  error.clear();
  const bool read = torch::readProgram(file, program, error);
  Check(read, error);
  if (read) Bind(program);
  std::map<std::string, torch::Payload> payloads;
  error.clear();
  Check(torch::readPayloads(file, "data/", payloads, error), error);
  return 0;
}
