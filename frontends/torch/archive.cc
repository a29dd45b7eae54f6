// Reads a zip directory with minizip, from memory. Entries are never extracted:
// stored ones are ranges of the file.
#include "frontends/torch/archive.h"

#include <minizip/unzip.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>

namespace partita::torch {
namespace {

// A file in memory, for minizip.
struct MemoryFile {
  std::string_view bytes;
  uint64_t position = 0;
};

void* openMemory(void* opaque, const void*, int) { return opaque; }

uLong readMemory(void*, void* stream, void* buffer, uLong size) {
  auto* file = static_cast<MemoryFile*>(stream);
  const uint64_t left = file->bytes.size() - file->position;
  const uLong count = static_cast<uLong>(std::min<uint64_t>(left, size));
  std::memcpy(buffer, file->bytes.data() + file->position, count);
  file->position += count;
  return count;
}

uLong writeNothing(void*, void*, const void*, uLong) { return 0; }

ZPOS64_T tellMemory(void*, void* stream) {
  return static_cast<MemoryFile*>(stream)->position;
}

long seekMemory(void*, void* stream, ZPOS64_T offset, int origin) {
  auto* file = static_cast<MemoryFile*>(stream);
  uint64_t base = origin == SEEK_END   ? file->bytes.size()
                  : origin == SEEK_CUR ? file->position
                                       : 0;
  // Offsets before the base are large numbers that wrap around.
  const uint64_t target = base + offset;
  if (target > file->bytes.size()) return -1;
  file->position = target;
  return 0;
}

int closeMemory(void*, void*) { return 0; }
int errorOfMemory(void*, void*) { return 0; }

struct CloseZip {
  void operator()(void* zip) const { unzClose(zip); }
};
using Zip = std::unique_ptr<void, CloseZip>;

bool leavesArchive(std::string_view name) {
  if (name.empty() || name.front() == '/' ||
      name.find('\\') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos)
    return true;
  for (size_t start = 0; start <= name.size();) {
    const size_t end = std::min(name.find('/', start), name.size());
    if (name.substr(start, end - start) == "..") return true;
    start = end + 1;
  }
  return false;
}

// Reads the current entry of `zip`.
bool readEntry(void* zip, std::string_view bytes, std::string& name,
               Entry& entry, std::string& error) {
  std::array<char, 4096> text;
  unz_file_info64 info;
  if (unzGetCurrentFileInfo64(zip, &info, text.data(), text.size(), nullptr, 0,
                              nullptr, 0) != UNZ_OK) {
    error = "expected an entry of the zip directory, found damaged bytes";
    return false;
  }
  if (info.size_filename >= text.size()) {
    error = "expected names below 4096 bytes, found one of " +
            std::to_string(info.size_filename);
    return false;
  }
  name.assign(text.data(), info.size_filename);
  const std::string quoted = "entry '" + name + "': ";
  if (leavesArchive(name)) {
    error = quoted + "expected a relative path inside the archive";
    return false;
  }
  if (info.compression_method != 0 ||
      info.compressed_size != info.uncompressed_size) {
    error = quoted +
            "expected it to be stored without compression, as "
            "torch.export.save does; save the model again";
    return false;
  }
  int method = 0, level = 0;
  if (unzOpenCurrentFile2(zip, &method, &level, /*raw=*/1) != UNZ_OK) {
    error = quoted + "expected its header before the data, found other bytes";
    return false;
  }
  entry.offset = unzGetCurrentFileZStreamPos64(zip);
  entry.size = info.uncompressed_size;
  unzCloseCurrentFile(zip);
  if (entry.offset > bytes.size() || entry.size > bytes.size() - entry.offset) {
    error = quoted + "expected " + std::to_string(entry.size) +
            " bytes, but the file ends before; it is truncated";
    return false;
  }
  return true;
}

// The name without the first folder, which is the same for all entries.
std::string belowRoot(const std::string& name) {
  const size_t slash = name.find('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

}  // namespace

bool Archive::open(std::string_view bytes, std::string& error) {
  bytes_ = bytes;
  entries_.clear();
  MemoryFile file{bytes};
  zlib_filefunc64_def functions = {openMemory,    readMemory, writeNothing,
                                   tellMemory,    seekMemory, closeMemory,
                                   errorOfMemory, &file};
  Zip zip(unzOpen2_64("", &functions));
  if (!zip) {
    error =
        "expected a zip file, found no zip directory at its end; it is "
        "truncated, or not written by torch.export.save";
    return false;
  }
  int state = unzGoToFirstFile(zip.get());
  for (; state == UNZ_OK; state = unzGoToNextFile(zip.get())) {
    std::string name;
    Entry entry;
    if (!readEntry(zip.get(), bytes, name, entry, error)) return false;
    if (!entries_.try_emplace(belowRoot(name), entry).second) {
      error = "entry '" + name + "' exists twice";
      return false;
    }
  }
  if (state == UNZ_END_OF_LIST_OF_FILE) return true;
  error = "expected the entries of the zip directory, found damaged bytes";
  return false;
}

const Entry* Archive::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace partita::torch
