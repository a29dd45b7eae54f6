// The start of a safetensors file; see runtime/base/safetensors.h.
#ifndef PARTITA_RUNTIME_BASE_WRITE_SAFETENSORS_H_
#define PARTITA_RUNTIME_BASE_WRITE_SAFETENSORS_H_

#include <string>
#include <vector>

#include "runtime/base/safetensors.h"

namespace partita::base {

struct SafetensorsPart {
  std::string name;
  const SafetensorsEntry* entry = nullptr;  // its offset has no effect
};

// The bytes before the tensors of a file that holds these tensors, one after
// the other.
std::string SafetensorsStart(const std::vector<SafetensorsPart>& parts);

// The name of an element type in a file: "F32", "BF16", "I8" ...
std::string StoredName(DType dtype);

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_WRITE_SAFETENSORS_H_
