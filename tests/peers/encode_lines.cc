// Encodes and decodes lines with a tokenizer.json, for tokenizers_test.py.
// Reads a JSON string per line; writes {"ids": [...], "text": ...} per line.
#include <iostream>
#include <string>

#include "nlohmann/json.hpp"
#include "runtime/tokenizer/tokenizer.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: encode_lines TOKENIZER.json < LINES\n";
    return 2;
  }
  const auto tokenizer = partita::tokenizer::Tokenizer::Open(argv[1]);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status().message() << "\n";
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json text = nlohmann::json::parse(line, nullptr, false);
    if (!text.is_string()) {
      std::cerr << "expected a JSON string, found " << line << "\n";
      return 1;
    }
    const auto ids = tokenizer->Encode(text.get<std::string>());
    const auto decoded =
        ids.ok() ? tokenizer->Decode(*ids) : absl::StatusOr<std::string>("");
    if (!ids.ok() || !decoded.ok()) {
      std::cerr << ids.status().message() << decoded.status().message() << "\n";
      return 1;
    }
    std::cout << nlohmann::json{{"ids", *ids}, {"text", *decoded}}.dump()
              << "\n";
  }
  return 0;
}
