// Counts the buffers of optimizer states that are in files.
#ifndef PARTITA_COMPILER_DRIVER_STATE_BUFFERS_H_
#define PARTITA_COMPILER_DRIVER_STATE_BUFFERS_H_

#include <cstdint>

#include "compiler/memory/memory_table.h"
#include "dialects/exec/entries.h"

namespace partita::driver {

// Moves the updated states of an entry, whose memory is planned, from
// `table.host` to `table.files`, and adds their buffers to `table.host`, as the
// runtime makes them (program::PlanStateWindows). `buffers` is the upper bound
// of the plan; 0: none.
void countStateFiles(const exec::Entry& entry, int64_t buffers,
                     memory::MemoryTable& table);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_STATE_BUFFERS_H_
