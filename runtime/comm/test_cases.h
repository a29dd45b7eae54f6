// Reference results of collectives, element by element, and test operations.
#ifndef PARTITA_RUNTIME_COMM_TEST_CASES_H_
#define PARTITA_RUNTIME_COMM_TEST_CASES_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/operation.h"

namespace partita::comm {

// Every kind on groups of n, with dimensions that divide evenly and unevenly,
// so that members at the front, in the middle and at the end are empty.
std::vector<Operation> TestOperations(int n);

// Every reduction of every type, large enough for several rounds.
std::vector<Operation> TestReductions();

// Bytes of a member's input: small whole numbers that differ between members,
// so that sums are exact in every type.
std::string TestInput(const Operation& operation, int member);

// The output of `receiver`, computed one element at a time as defined in
// program.fbs.
std::string ExpectedOutput(const Operation& operation, int n, int receiver,
                           const std::vector<std::string>& inputs);

// Runs `operation` once on all members of a group of all ranks, one thread per
// rank, with outputs filled with 0xEE. Returns the outputs. Fails the test if a
// call fails. `in_place`: output and input are one buffer.
std::vector<std::string> RunOnThreads(
    const std::vector<std::unique_ptr<Communicator>>& communicators,
    const Operation& operation, const std::vector<std::string>& inputs,
    bool in_place = false);

// Checks all of TestOperations and TestReductions on groups of 1 to 8.
using MakeCommunicators =
    std::function<std::vector<std::unique_ptr<Communicator>>(int)>;
void CheckAgainstReference(const MakeCommunicators& make);

// Collective over two or more ranks: each sends many tensors to the next rank
// in a ring before it receives from the previous one, with sums over all ranks
// in between. Fails if a received tensor differs from the one sent.
absl::Status TransferRing(Communicator& communicator);

// Runs TransferRing on two and three ranks, one thread per rank. Checks that a
// mismatched transfer and a missing one are errors that name both ends.
void CheckTransfers(
    const std::function<std::vector<std::unique_ptr<Communicator>>(
        int, std::chrono::milliseconds)>& make);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_TEST_CASES_H_
