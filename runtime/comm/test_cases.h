// What collectives must do, element by element, and operations to try it on.
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

// Every kind on groups of n, with dimensions that divide evenly and not, that
// leave members empty, at the front, in the middle and at the end.
std::vector<Operation> TestOperations(int n);

// Every reduction of every type, big enough for several rounds.
std::vector<Operation> TestReductions();

// Bytes of a member's input: small whole numbers that differ between members,
// so that sums are exact in every type.
std::string TestInput(const Operation& operation, int member);

// The output of `receiver`, computed one element at a time from what
// program.fbs says.
std::string ExpectedOutput(const Operation& operation, int n, int receiver,
                           const std::vector<std::string>& inputs);

// Runs `operation` once on all members of a group that is all of `ranks`, each
// on a thread, with outputs full of 0xEE; returns the outputs. Fails the test
// where a call fails. `in_place`: output and input are one buffer.
std::vector<std::string> RunOnThreads(
    const std::vector<std::unique_ptr<Communicator>>& communicators,
    const Operation& operation, const std::vector<std::string>& inputs,
    bool in_place = false);

// All of TestOperations and TestReductions on groups of 1 to 8.
using MakeCommunicators =
    std::function<std::vector<std::unique_ptr<Communicator>>(int)>;
void CheckAgainstReference(const MakeCommunicators& make);

// All ranks, two or more, call it: each sends the next one in a ring many
// tensors before it receives from the one before, sums over all in between. An
// error if something else arrives than was sent.
absl::Status TransferRing(Communicator& communicator);

// TransferRing on two and three ranks, each on a thread; another transfer than
// was sent, and one that never is, are errors that name both ends.
void CheckTransfers(
    const std::function<std::vector<std::unique_ptr<Communicator>>(
        int, std::chrono::milliseconds)>& make);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_TEST_CASES_H_
