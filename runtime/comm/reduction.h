// How elements of several members are combined. This header includes nothing,
// because code for GPUs includes it too.
#ifndef PARTITA_RUNTIME_COMM_REDUCTION_H_
#define PARTITA_RUNTIME_COMM_REDUCTION_H_

namespace partita::comm {

// kAny and kAll are those of i1. executor/collective_desc.cc converts the
// values of programs to these.
enum class Reduction : signed char { kSum = 0, kProd, kMax, kMin, kAny, kAll };

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_REDUCTION_H_
