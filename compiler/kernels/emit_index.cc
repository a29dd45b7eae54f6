// Symbolic index arithmetic: joins and splits digits (symbol / divisor) %
// modulus.
#include "compiler/kernels/emit_index.h"

#include <algorithm>
#include <tuple>

namespace partita::kernels {
namespace {

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool comesBefore(const Term& a, const Term& b) {
  if (a.symbol != b.symbol) return a.symbol->id < b.symbol->id;
  return std::tie(a.divisor, a.modulus, a.scale) <
         std::tie(b.divisor, b.modulus, b.scale);
}

// True if `high` counts how often `low` wraps, at the matching scale: together
// they are one digit.
bool continues(const Term& low, const Term& high) {
  return low.symbol == high.symbol && low.modulus != 0 &&
         high.divisor == low.divisor * low.modulus &&
         high.scale == low.scale * low.modulus;
}

}  // namespace

int64_t Term::count() const {
  int64_t all = ceilDiv(symbol->extent, divisor);
  return modulus == 0 ? all : std::min(modulus, all);
}

Index::Index(const Symbol* symbol) {
  terms_.push_back({1, symbol, 1, 0});
  normalize();
}

int Index::depth() const {
  int depth = 0;
  for (const Term& term : terms_) depth = std::max(depth, term.symbol->depth);
  return depth;
}

const Symbol* Index::laneSymbol() const {
  for (const Term& term : terms_)
    if (term.symbol->lanes != 0) return term.symbol;
  return nullptr;
}

bool Index::within(int64_t size) const {
  int64_t lowest = offset_, highest = offset_;
  for (const Term& term : terms_)
    (term.scale < 0 ? lowest : highest) += term.scale * (term.count() - 1);
  return lowest >= 0 && highest < size;
}

Index Index::replaced(const Symbol* from, const Symbol* to) const {
  Index result = *this;
  for (Term& term : result.terms_)
    if (term.symbol == from) term.symbol = to;
  result.normalize();
  return result;
}

Index Index::operator+(const Index& other) const {
  Index result = *this;
  result.offset_ += other.offset_;
  result.terms_.append(other.terms_.begin(), other.terms_.end());
  result.normalize();
  return result;
}

Index Index::operator*(int64_t factor) const {
  Index result = *this;
  result.offset_ *= factor;
  for (Term& term : result.terms_) term.scale *= factor;
  result.normalize();
  return result;
}

void Index::normalize() {
  llvm::SmallVector<Term, 4> pending(terms_.begin(), terms_.end());
  bool joined = true;
  while (joined) {
    joined = false;
    for (Term& term : pending)
      if (term.modulus != 0 &&
          term.divisor * term.modulus >= term.symbol->extent)
        term.modulus = 0;
    llvm::erase_if(pending, [](const Term& term) {
      return term.scale == 0 || term.count() <= 1;
    });
    std::sort(pending.begin(), pending.end(), comesBefore);
    for (size_t i = 0; i < pending.size() && !joined; ++i) {
      for (size_t j = 0; j < pending.size() && !joined; ++j) {
        if (i == j || pending[i].symbol != pending[j].symbol) continue;
        Term& low = pending[i];
        const Term& high = pending[j];
        if (low.divisor == high.divisor && low.modulus == high.modulus) {
          low.scale += high.scale;
        } else if (continues(low, high)) {
          low.modulus = high.modulus == 0 ? 0 : low.modulus * high.modulus;
        } else {
          continue;
        }
        pending.erase(pending.begin() + j);
        joined = true;
      }
    }
  }
  terms_.assign(pending.begin(), pending.end());
}

std::optional<std::pair<Index, Index>> Index::trySplit(int64_t size) const {
  if (size == 1) return std::make_pair(*this, Index());
  if (offset_ < 0) return std::nullopt;
  Index quotient(offset_ / size), remainder(offset_ % size);
  int64_t largest = remainder.offset_;  // largest value of the remainder
  for (const Term& term : terms_) {
    if (term.scale < 0) return std::nullopt;
    if (term.scale % size == 0) {
      quotient.terms_.push_back(
          {term.scale / size, term.symbol, term.divisor, term.modulus});
      continue;
    }
    int64_t kept =
        size / term.scale;  // values of the digit that stay in the remainder
    if (size % term.scale != 0 || term.count() <= kept) {
      remainder.terms_.push_back(term);
      largest += term.scale * (term.count() - 1);
      continue;
    }
    if (term.modulus % kept != 0) return std::nullopt;
    remainder.terms_.push_back({term.scale, term.symbol, term.divisor, kept});
    largest += term.scale * (kept - 1);
    quotient.terms_.push_back(
        {1, term.symbol, term.divisor * kept, term.modulus / kept});
  }
  if (largest >= size) return std::nullopt;
  quotient.normalize();
  remainder.normalize();
  return std::make_pair(quotient, remainder);
}

llvm::SmallVector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

int64_t product(llvm::ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes) result *= size;
  return result;
}

Index linearize(llvm::ArrayRef<Index> index, llvm::ArrayRef<int64_t> strides) {
  Index result;
  for (auto [i, stride] : llvm::zip_equal(index, strides))
    result = result + i * stride;
  return result;
}

int depthOf(llvm::ArrayRef<Index> index) {
  int depth = 0;
  for (const Index& i : index) depth = std::max(depth, i.depth());
  return depth;
}

const Symbol* laneSymbolOf(llvm::ArrayRef<Index> index) {
  for (const Index& i : index)
    if (const Symbol* symbol = i.laneSymbol()) return symbol;
  return nullptr;
}

}  // namespace partita::kernels
