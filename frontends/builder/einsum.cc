#include "frontends/builder/einsum.h"

#include <cctype>
#include <map>
#include <set>

namespace partita::builder {
namespace {

using nn::ReduceKind;

// An operand of an einsum: a tensor with a distinct letter for each dimension.
struct Term {
  Val value;
  std::string labels;
};

int64_t position(const std::string& labels, char label) {
  size_t found = labels.find(label);
  return found == std::string::npos ? -1 : static_cast<int64_t>(found);
}

// Sums over the dimensions whose labels are not in `kept`.
Term sumOut(Emitter& e, Term term, const std::string& kept) {
  Shape dims;
  std::string labels;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (position(kept, term.labels[i]) < 0) {
      dims.push_back(i);
    } else {
      labels += term.labels[i];
    }
  }
  return dims.empty()
             ? term
             : Term{e.reduce(ReduceKind::sum, term.value, dims, false), labels};
}

// A letter that occurs twice takes the diagonal: the other elements are masked
// and summed.
Term takeDiagonals(Emitter& e, Term term) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    size_t j = term.labels.find(term.labels[i], i + 1);
    if (j == std::string::npos) continue;
    Dims shape = term.value.shape();
    Val on = e.compare(Compare::eq, e.iota(shape, i, e.i64()),
                       e.iota(shape, j, e.i64()));
    Val masked = e.select(on, term.value, e.splatLike(0, term.value));
    term.value =
        e.reduce(ReduceKind::sum, masked, {static_cast<int64_t>(j)}, false);
    term.labels.erase(j, 1);
    --i;
  }
  return term;
}

// Contracts the labels that both terms have and `kept` lacks.
Term contract(Emitter& e, Term lhs, Term rhs, const std::string& kept) {
  lhs = sumOut(e, lhs, rhs.labels + kept);
  rhs = sumOut(e, rhs, lhs.labels + kept);
  Shape lhs_batch, rhs_batch, lhs_contract, rhs_contract;
  std::string batch, free;
  for (size_t i = 0; i < lhs.labels.size(); ++i) {
    int64_t j = position(rhs.labels, lhs.labels[i]);
    if (j < 0) {
      free += lhs.labels[i];
    } else if (position(kept, lhs.labels[i]) >= 0) {
      lhs_batch.push_back(i);
      rhs_batch.push_back(j);
      batch += lhs.labels[i];
    } else {
      lhs_contract.push_back(i);
      rhs_contract.push_back(j);
    }
  }
  for (char label : rhs.labels) {
    if (position(lhs.labels, label) < 0) free += label;
  }
  return {e.dot(lhs.value, rhs.value, lhs_batch, rhs_batch, lhs_contract,
                rhs_contract),
          batch + free};
}

// Drops dimensions of size 1 that broadcast against the same label elsewhere.
Term dropOnes(Emitter& e, Term term, const std::map<char, int64_t>& sizes) {
  Shape shape;
  std::string labels;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (term.value.dim(i) == 1 && sizes.at(term.labels[i]) != 1) continue;
    shape.push_back(term.value.dim(i));
    labels += term.labels[i];
  }
  return {e.reshape(term.value, shape), labels};
}

// E.g. "ij,jk->ik". Spaces are removed; an ellipsis becomes digits, one per
// dimension, aligned on the right.
struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

bool parseEquation(Emitter& e, llvm::StringRef given,
                   llvm::ArrayRef<Val> values, Equation& equation) {
  const auto fail = [&](const llvm::Twine& message) {
    e.error("Einsum: " + message);
    return false;
  };
  std::string text;
  for (char c : given) {
    if (!std::isspace(static_cast<unsigned char>(c))) text += c;
  }
  auto [left, right] = llvm::StringRef(text).split("->");
  llvm::SmallVector<llvm::StringRef> parts;
  left.split(parts, ',');
  if (parts.size() != values.size())
    return fail("expected an equation with one term per input, found '" + text +
                "'");
  std::map<char, int> counts;
  std::string ellipsis;
  for (auto [part, value] : llvm::zip(parts, values)) {
    std::string labels = part.str();
    size_t dots = labels.find("...");
    if (dots != std::string::npos) {
      int64_t hidden = value.rank() - static_cast<int64_t>(labels.size() - 3);
      if (hidden < 0 || hidden > 9)
        return fail("an ellipsis does not fit its input");
      std::string digits;
      for (int64_t i = hidden; i > 0; --i) digits += static_cast<char>('0' + i);
      labels.replace(dots, 3, digits);
      if (digits.size() > ellipsis.size()) ellipsis = digits;
    }
    for (char c : part) {
      if (c != '.' && !std::isalpha(static_cast<unsigned char>(c)))
        return fail("expected letters in '" + text + "'");
      if (c != '.') ++counts[c];
    }
    if (static_cast<int64_t>(labels.size()) != value.rank()) {
      return fail("expected one letter per dimension in '" + text + "'");
    }
    equation.inputs.push_back(labels);
  }
  if (text.find("->") == std::string::npos) {
    // Implicit output: the ellipsis, then letters that occur once, sorted.
    equation.output = ellipsis;
    for (auto [label, count] : counts)
      equation.output += count == 1 ? std::string(1, label) : "";
  } else {
    equation.output = right.str();
    size_t dots = equation.output.find("...");
    if (dots != std::string::npos) equation.output.replace(dots, 3, ellipsis);
  }
  std::set<char> distinct(equation.output.begin(), equation.output.end());
  if (distinct.size() != equation.output.size())
    return fail("expected different letters in the output");
  return true;
}

}  // namespace

Val einsum(Emitter& e, llvm::StringRef text, llvm::ArrayRef<Val> values) {
  Equation equation;
  if (!parseEquation(e, text, values, equation)) return {};
  std::map<char, int64_t> sizes;
  for (auto [value, labels] : llvm::zip(values, equation.inputs)) {
    for (size_t i = 0; i < labels.size(); ++i) {
      int64_t& size = sizes.try_emplace(labels[i], 1).first->second;
      if (value.dim(i) != 1 && size != 1 && size != value.dim(i)) {
        e.error("Einsum: sizes of one letter differ");
        return {};
      }
      if (value.dim(i) != 1) size = value.dim(i);
    }
  }
  for (char label : equation.output) {
    if (!sizes.count(label)) {
      e.error("Einsum: expected the output's letters among the inputs'");
      return {};
    }
  }
  std::vector<Term> terms;
  for (auto [value, labels] : llvm::zip(values, equation.inputs)) {
    terms.push_back(takeDiagonals(e, dropOnes(e, {value, labels}, sizes)));
  }
  Term result = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string kept = equation.output;
    for (size_t j = i + 1; j < terms.size(); ++j) kept += terms[j].labels;
    result = contract(e, result, terms[i], kept);
  }
  result = sumOut(e, result, equation.output);
  Shape shape, perm, present;
  for (char label : equation.output) {
    shape.push_back(sizes[label]);
    int64_t at = position(result.labels, label);
    if (at >= 0) perm.push_back(at);
    if (at >= 0) present.push_back(shape.size() - 1);
  }
  return e.broadcastDims(e.transpose(result.value, perm), shape, present);
}

}  // namespace partita::builder
