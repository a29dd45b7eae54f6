// Writes small ONNX files for tests: the wire format by hand, message by
// message.
#include "frontends/onnx/test_model.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace partita::onnx {

void Message::raw(uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    encoded_ += static_cast<char>(value | 0x80);
  encoded_ += static_cast<char>(value);
}

Message& Message::varint(uint32_t field, uint64_t value) {
  raw(uint64_t{field} << 3);
  raw(value);
  return *this;
}

Message& Message::bytes(uint32_t field, const std::string& value) {
  raw(uint64_t{field} << 3 | 2);
  raw(value.size());
  encoded_ += value;
  return *this;
}

Message& Message::real(uint32_t field, float value) {
  raw(uint64_t{field} << 3 | 5);
  encoded_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return *this;
}

Message attribute(const std::string& name, int64_t value) {
  return Message().bytes(1, name).varint(3, value).varint(20, 2);
}

Message attribute(const std::string& name, const std::vector<int64_t>& values) {
  Message message;
  message.bytes(1, name);
  for (int64_t value : values) message.varint(8, value);
  return message.varint(20, 7);
}

Message attribute(const std::string& name, const Message& graph) {
  return Message().bytes(1, name).message(6, graph).varint(20, 5);
}

Message node(const std::string& op, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs,
             const std::vector<Message>& attributes, const std::string& domain,
             const std::string& name) {
  Message message;
  for (const std::string& input : inputs) message.bytes(1, input);
  for (const std::string& output : outputs) message.bytes(2, output);
  message.bytes(3, name).bytes(4, op);
  for (const Message& attribute : attributes) message.message(5, attribute);
  return message.bytes(7, domain);
}

Message valueInfo(const std::string& name, int type,
                  const std::vector<std::string>& dims) {
  Message shape;
  for (const std::string& dim : dims) {
    bool is_number = std::all_of(dim.begin(), dim.end(), [](unsigned char c) {
      return std::isdigit(c) != 0;
    });
    if (dim.empty()) {
      shape.message(1, Message());
      continue;
    }
    shape.message(1, is_number ? Message().varint(1, std::stoll(dim))
                               : Message().bytes(2, dim));
  }
  Message tensor = Message().varint(1, type).message(2, shape);
  return Message().bytes(1, name).message(2, Message().message(1, tensor));
}

namespace {

Message tensor(const std::string& name, const std::vector<int64_t>& dims,
               int type) {
  Message message;
  for (int64_t dim : dims) message.varint(1, dim);
  return message.varint(2, type).bytes(8, name);
}

template <typename T>
std::string bytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

}  // namespace

Message floats(const std::string& name, const std::vector<int64_t>& dims,
               const std::vector<float>& values) {
  return tensor(name, dims, kF32).bytes(9, bytesOf(values));
}

Message int64s(const std::string& name, const std::vector<int64_t>& dims,
               const std::vector<int64_t>& values) {
  return tensor(name, dims, kI64).bytes(9, bytesOf(values));
}

Message external(const std::string& name, const std::vector<int64_t>& dims,
                 const std::string& location, const std::string& offset) {
  auto entry = [](const std::string& key, const std::string& value) {
    return Message().bytes(1, key).bytes(2, value);
  };
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return tensor(name, dims, kF32)
      .message(13, entry("location", location))
      .message(13, entry("offset", offset))
      .message(13, entry("length", std::to_string(4 * count)))
      .varint(14, 1);
}

Message graph(const std::vector<Message>& nodes,
              const std::vector<Message>& inputs,
              const std::vector<Message>& outputs,
              const std::vector<Message>& initializers) {
  Message message;
  for (const Message& node : nodes) message.message(1, node);
  message.bytes(2, "graph");
  for (const Message& tensor : initializers) message.message(5, tensor);
  for (const Message& input : inputs) message.message(11, input);
  for (const Message& output : outputs) message.message(12, output);
  return message;
}

Message model(const Message& graph, int64_t opset,
              const std::vector<Message>& functions) {
  Message message;
  message.varint(1, 10).message(7, graph).message(
      8, Message().bytes(1, "").varint(2, opset));
  for (const Message& function : functions) message.message(25, function);
  return message;
}

}  // namespace partita::onnx
