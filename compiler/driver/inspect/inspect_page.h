// Describes an artifact on one page.
#ifndef PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_PAGE_H_
#define PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_PAGE_H_

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {

// Prints what inspectArtifact returned: the model, the devices and the plan,
// inputs and outputs, counts of operations, memory, and the first rows of long
// lists.
void printPage(const llvm::json::Value& facts, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_PAGE_H_
