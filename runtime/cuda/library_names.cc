// Lists folders, then tests files in them.
#include "runtime/cuda/library_names.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace partita::cuda {
namespace {

namespace fs = std::filesystem;

// Subfolders of `folder` whose names begin with `start`, sorted.
std::vector<std::string> Subfolders(const std::string& folder,
                                    const std::string& start) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().filename().string().rfind(start, 0) == 0)
      found.push_back(entry->path().string());
  std::sort(found.begin(), found.end());
  return found;
}

// Folders in which Python's packages lie.
std::vector<std::string> PackageFolders(const Environment& environment) {
  std::vector<std::string> roots;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string root = environment(variable); !root.empty())
      roots.push_back(root);
  if (const std::string home = environment("HOME"); !home.empty())
    roots.push_back(home + "/.local");
  roots.emplace_back("/usr/local");
  roots.emplace_back("/usr");
  std::vector<std::string> folders;
  for (const std::string& root : roots)
    for (const std::string& python : Subfolders(root + "/lib", "python3"))
      for (const char* packages : {"site-packages", "dist-packages"})
        folders.push_back(absl::StrCat(python, "/", packages));
  return folders;
}

std::vector<std::string> LibraryFolders(const std::string& pip,
                                        const Environment& environment) {
  std::vector<std::string> folders;
  if (const std::string home = environment("CUDA_HOME"); !home.empty())
    folders.push_back(home + "/lib64");
  folders.emplace_back("/usr/local/cuda/lib64");
  if (const std::string conda = environment("CONDA_PREFIX"); !conda.empty())
    folders.push_back(conda + "/lib");
  for (const std::string& packages : PackageFolders(environment)) {
    folders.push_back(absl::StrCat(packages, "/nvidia/", pip, "/lib"));
    // Packages for CUDA 13 share one folder.
    for (const std::string& shared : Subfolders(packages + "/nvidia", "cu1"))
      folders.push_back(shared + "/lib");
  }
  return folders;
}

}  // namespace

std::string ReadEnvironment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

std::vector<std::string> LibraryNames(const LibrarySearch& search,
                                      int driver_version,
                                      const Environment& environment) {
  std::vector<int> versions = search.versions;
  if (search.follows_cuda && driver_version > 0)
    std::stable_partition(versions.begin(), versions.end(), [&](int version) {
      return version <= driver_version / 1000;
    });
  const std::vector<std::string> folders =
      LibraryFolders(search.pip, environment);
  std::vector<std::string> names;
  for (const int version : versions) {
    const std::string name = absl::StrCat(search.name, ".", version);
    names.push_back(name);
    for (const std::string& folder : folders) {
      std::error_code error;
      const std::string path = absl::StrCat(folder, "/", name);
      if (fs::exists(path, error)) names.push_back(path);
    }
  }
  return names;
}

}  // namespace partita::cuda
