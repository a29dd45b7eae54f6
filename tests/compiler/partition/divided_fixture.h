// Test fixture: partitions modules with shardings and compares them with the
// undivided ones.
#ifndef PARTITA_TESTS_COMPILER_PARTITION_DIVIDED_FIXTURE_H_
#define PARTITA_TESTS_COMPILER_PARTITION_DIVIDED_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mlir/IR/MLIRContext.h"

namespace partita::partition {

class DividedTest : public testing::Test {
 protected:
  DividedTest();

  // Partitions the module, expects the numbers of the undivided one, and
  // records its collectives ("all_reduce over y: 64") and its text. `mesh` is
  // written as in dist.mesh, without brackets; `function` defines @main.
  void divide(const std::string& mesh, const std::string& function);

  mlir::MLIRContext context_;
  std::vector<std::string> sent_;
  std::string text_;
};

// An argument of @main: %x: tensor<type> {dist.sharding = ...}.
std::string argument(const std::string& name, const std::string& type,
                     const std::string& dims);
// The attribute with the sharding of an operation's one result.
std::string placed(const std::string& dims);

}  // namespace partita::partition

#endif  // PARTITA_TESTS_COMPILER_PARTITION_DIVIDED_FIXTURE_H_
