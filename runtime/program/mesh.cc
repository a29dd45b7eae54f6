// Positions, coordinates and the digits that parts of axes select.
#include "runtime/program/mesh.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/program/types.h"

namespace partita::program {
namespace {

// Distance between two coordinates of `axis` whose digit differs by one.
int64_t StrideOf(const AxisPart& part, int64_t extent) {
  return extent / (part.pre() * part.size());
}

}  // namespace

int64_t SizeOf(const Mesh* mesh) {
  int64_t size = 1;
  if (mesh == nullptr) return size;
  for (int64_t i = 0; i < SizeOrZero(mesh->axes()); ++i)
    size *= mesh->axes()->Get(static_cast<unsigned>(i))->size();
  return size;
}

int64_t GroupSize(const AxisList* axes) {
  int64_t size = 1;
  for (int64_t i = 0; i < SizeOrZero(axes); ++i)
    size *= axes->Get(static_cast<unsigned>(i))->size();
  return size;
}

std::string DescribeMesh(const Mesh* mesh) {
  std::string text;
  if (mesh == nullptr) return text;
  for (int64_t i = 0; i < SizeOrZero(mesh->axes()); ++i) {
    const MeshAxis& axis = *mesh->axes()->Get(static_cast<unsigned>(i));
    absl::StrAppend(&text, i > 0 ? "," : "", axis.name()->str(), "=",
                    axis.size());
  }
  return text;
}

MeshPlace::MeshPlace(const Mesh* mesh, int64_t rank)
    : mesh_(mesh), rank_(rank) {
  if (mesh == nullptr) return;
  rank_at_ = ToVector(mesh->device_ids());
  int64_t position = rank;
  if (!rank_at_.empty()) {
    position =
        std::find(rank_at_.begin(), rank_at_.end(), rank) - rank_at_.begin();
  }
  for (int64_t i = 0; i < SizeOrZero(mesh->axes()); ++i)
    extents_.push_back(mesh->axes()->Get(static_cast<unsigned>(i))->size());
  coordinates_.resize(extents_.size());
  for (size_t i = extents_.size(); i-- > 0; position /= extents_[i])
    coordinates_[i] = position % extents_[i];
}

int64_t MeshPlace::IndexAlong(const AxisList* axes) const {
  int64_t index = 0;
  for (int64_t i = 0; i < SizeOrZero(axes); ++i) {
    const AxisPart& part = *axes->Get(static_cast<unsigned>(i));
    const size_t axis = static_cast<size_t>(part.axis());
    index = index * part.size() +
            coordinates_[axis] / StrideOf(part, extents_[axis]) % part.size();
  }
  return index;
}

std::vector<int64_t> MeshPlace::GroupAlong(const AxisList* axes) const {
  std::vector<int64_t> ranks;
  const int64_t size = GroupSize(axes);
  for (int64_t index = 0; index < size; ++index) {
    std::vector<int64_t> coordinates = coordinates_;
    int64_t rest = index;
    for (int64_t i = SizeOrZero(axes); i-- > 0;) {
      const AxisPart& part = *axes->Get(static_cast<unsigned>(i));
      const size_t axis = static_cast<size_t>(part.axis());
      const int64_t stride = StrideOf(part, extents_[axis]);
      const int64_t own = coordinates_[axis] / stride % part.size();
      coordinates[axis] += (rest % part.size() - own) * stride;
      rest /= part.size();
    }
    int64_t position = 0;
    for (size_t i = 0; i < extents_.size(); ++i)
      position = position * extents_[i] + coordinates[i];
    ranks.push_back(rank_at_.empty() ? position
                                     : rank_at_[static_cast<size_t>(position)]);
  }
  return ranks;
}

std::string MeshPlace::Describe() const {
  std::string text = absl::StrCat("rank ", rank_);
  for (size_t i = 0; i < coordinates_.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? " (" : ", ",
                    mesh_->axes()->Get(static_cast<unsigned>(i))->name()->str(),
                    " ", coordinates_[i]);
  }
  return coordinates_.empty() ? text : text + ")";
}

const Entry& EntryAt(const Program& program, const MeshPlace& place) {
  return *program.entries()->Get(
      static_cast<unsigned>(place.IndexAlong(program.pipeline())));
}

Rows OwnedRows(const Shard& shard, size_t dim, const MeshPlace& place) {
  const DimShard& division = *shard.dims()->Get(static_cast<unsigned>(dim));
  const int64_t size = shard.shape()->Get(static_cast<unsigned>(dim));
  if (SizeOrZero(division.axes()) == 0) return {0, size};
  const int64_t index = place.IndexAlong(division.axes());
  return {std::min(size, index * division.block()),
          std::min(size, (index + 1) * division.block())};
}

std::vector<Rows> OwnedBlock(const Shard& shard, const MeshPlace& place) {
  std::vector<Rows> block;
  for (int64_t i = 0; i < SizeOrZero(shard.dims()); ++i)
    block.push_back(OwnedRows(shard, static_cast<size_t>(i), place));
  return block;
}

std::vector<bool> EntriesThatHold(const Program& program, Held what,
                                  int64_t index) {
  std::vector<bool> holding;
  for (const Entry* entry : *program.entries()) {
    bool holds = false;
    const auto look = [&](const flatbuffers::Vector<int>* list) {
      for (int64_t i = 0; i < SizeOrZero(list); ++i)
        holds = holds || list->Get(static_cast<unsigned>(i)) == index;
    };
    switch (what) {
      case Held::kInput:
        look(entry->inputs());
        break;
      case Held::kOutput:
        look(entry->outputs());
        break;
      case Held::kParameter:
        look(entry->main_globals());
        look(entry->init_parameters());
        look(entry->main_updates());
        break;
    }
    holding.push_back(holds);
  }
  return holding;
}

std::vector<int64_t> FirstHolders(const Program& program, const Shard* shard,
                                  const std::vector<bool>& entries) {
  if (shard == nullptr && entries.size() == 1) return {0};
  std::set<std::vector<int64_t>> seen;
  std::vector<int64_t> ranks;
  const int64_t size = SizeOf(program.mesh());
  for (int64_t rank = 0; rank < size; ++rank) {
    const MeshPlace place(program.mesh(), rank);
    if (!entries[static_cast<size_t>(place.IndexAlong(program.pipeline()))])
      continue;
    std::vector<int64_t> block;
    for (int64_t i = 0; shard != nullptr && i < SizeOrZero(shard->dims()); ++i)
      block.push_back(place.IndexAlong(
          shard->dims()->Get(static_cast<unsigned>(i))->axes()));
    if (seen.insert(std::move(block)).second) ranks.push_back(rank);
  }
  return ranks;
}

bool HoldsFirstCopy(const Program& program, const Shard* shard,
                    const std::vector<bool>& entries, int64_t rank) {
  const std::vector<int64_t> ranks = FirstHolders(program, shard, entries);
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

}  // namespace partita::program
