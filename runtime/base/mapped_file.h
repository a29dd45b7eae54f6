// A file mapped into memory, read only.
#ifndef PARTITA_RUNTIME_BASE_MAPPED_FILE_H_
#define PARTITA_RUNTIME_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace partita::base {

// Movable; unmaps when destroyed. Pages are read from disk when first touched,
// so opening costs the same for any size. A file that another process truncates
// while it is mapped faults on access, as with every mapping.
class MappedFile {
 public:
  // NotFound if there is no such file; InvalidArgument if it is a folder or
  // cannot be mapped. An empty file maps to an empty range.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  // Valid as long as this object lives; page aligned.
  std::string_view bytes() const { return {data_, size_}; }

  // Releases the physical pages that are wholly inside bytes [offset, offset +
  // size); they are read from the file again when touched.
  void Release(size_t offset, size_t size) const;

 private:
  std::string path_;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_MAPPED_FILE_H_
