// The order in which libraries are tried, and the folders in which they are
// found.
#include "runtime/cuda/library_names.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::cuda {
namespace {

using ::testing::ElementsAre;

const LibrarySearch kBlas = {
    "libexample_blas.so", "example_blas", {13, 12, 11}, true};

std::string Nothing(const std::string&) { return ""; }

TEST(LibraryNamesTest, VersionsThatTheDriverRunsComeFirst) {
  EXPECT_THAT(LibraryNames(kBlas, 13000, Nothing),
              ElementsAre("libexample_blas.so.13", "libexample_blas.so.12",
                          "libexample_blas.so.11"));
  EXPECT_THAT(LibraryNames(kBlas, 12020, Nothing),
              ElementsAre("libexample_blas.so.12", "libexample_blas.so.11",
                          "libexample_blas.so.13"));
  EXPECT_THAT(LibraryNames(kBlas, 0, Nothing),
              ElementsAre("libexample_blas.so.13", "libexample_blas.so.12",
                          "libexample_blas.so.11"));
  LibrarySearch other = kBlas;
  other.follows_cuda = false;
  EXPECT_EQ(LibraryNames(other, 12020, Nothing)[0], "libexample_blas.so.13");
}

TEST(LibraryNamesTest, FoldersOfToolkitCondaAndPipAreSearched) {
  std::string root = ::testing::TempDir() + "/names_XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  const auto add = [&](const std::string& folder, const std::string& file) {
    const std::string path = root + "/" + folder;
    std::filesystem::create_directories(path);
    std::ofstream(path + "/" + file) << "x";
    return path + "/" + file;
  };
  const std::string toolkit = add("toolkit/lib64", "libexample_blas.so.12"),
                    conda = add("conda/lib", "libexample_blas.so.12"),
                    pip =
                        add("venv/lib/python3.11/site-packages/nvidia/"
                            "example_blas/lib",
                            "libexample_blas.so.12"),
                    pip13 =
                        add("venv/lib/python3.11/site-packages/nvidia/"
                            "cu13/lib",
                            "libexample_blas.so.13"),
                    user =
                        add(".local/lib/python3.12/site-packages/nvidia/"
                            "example_blas/lib",
                            "libexample_blas.so.11");
  const std::map<std::string, std::string> variables = {
      {"CUDA_HOME", root + "/toolkit"},
      {"CONDA_PREFIX", root + "/conda"},
      {"VIRTUAL_ENV", root + "/venv"},
      {"HOME", root}};
  const auto read = [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  };
  EXPECT_THAT(
      LibraryNames(kBlas, 13000, read),
      ElementsAre("libexample_blas.so.13", pip13, "libexample_blas.so.12",
                  toolkit, conda, pip, "libexample_blas.so.11", user));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace partita::cuda
