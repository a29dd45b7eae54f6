// The zip file of a .pt2 model: named entries, stored without compression.
#ifndef PARTITA_FRONTENDS_TORCH_ARCHIVE_H_
#define PARTITA_FRONTENDS_TORCH_ARCHIVE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace partita::torch {

// The bytes of one entry, as a range of the file.
struct Entry {
  uint64_t offset = 0;
  uint64_t size = 0;
};

class Archive {
 public:
  // Reads the directory of the zip file `bytes`, which must outlive the result.
  // Returns false and sets `error` if it is damaged, or has entries that are
  // compressed, exist twice or leave the archive ("..").
  bool open(std::string_view bytes, std::string& error);

  // The entry with this name below the archive's root folder; null if absent.
  const Entry* find(const std::string& name) const;
  std::string_view contents(const Entry& entry) const {
    return bytes_.substr(entry.offset, entry.size);
  }
  // By name, below the root folder.
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::string_view bytes_;
  std::map<std::string, Entry> entries_;
};

}  // namespace partita::torch

#endif  // PARTITA_FRONTENDS_TORCH_ARCHIVE_H_
