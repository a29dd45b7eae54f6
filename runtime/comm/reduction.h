// Ways to combine elements of several members. This header includes nothing,
// because GPU code includes it too.
#ifndef PARTITA_RUNTIME_COMM_REDUCTION_H_
#define PARTITA_RUNTIME_COMM_REDUCTION_H_

namespace partita::comm {

// kAny and kAll apply to i1. executor/collective_desc.cc converts program
// values to these.
enum class Reduction : signed char { kSum = 0, kProd, kMax, kMin, kAny, kAll };

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_REDUCTION_H_
