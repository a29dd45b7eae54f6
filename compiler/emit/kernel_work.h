// compiler/kernels/kernel_work.h under the name that compiler/driver/planning
// includes.
#ifndef PARTITA_COMPILER_EMIT_KERNEL_WORK_H_
#define PARTITA_COMPILER_EMIT_KERNEL_WORK_H_

#include "compiler/kernels/kernel_work.h"

namespace partita::emit {

using kernels::KernelWork;
using kernels::pairsOf;
using kernels::workOf;

}  // namespace partita::emit

#endif  // PARTITA_COMPILER_EMIT_KERNEL_WORK_H_
