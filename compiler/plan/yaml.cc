// Builds the tree from yaml-cpp's events. yaml-cpp's own tree follows aliases
// without a limit and loses repeated keys.
#include "compiler/plan/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <exception>
#include <sstream>
#include <utility>

#include "compiler/plan/text.h"

namespace partita::plan {
namespace {

constexpr size_t kMostBytes = 1 << 22;
constexpr size_t kMostNodes = 100000;
constexpr size_t kDeepest = 32;

// Thrown by the event handlers, which have no other way to stop.
struct Refusal {
  Location where;
  std::string message;
};

Location At(const YAML::Mark& mark) {
  if (mark.is_null()) return {1, 1};
  return {mark.line + 1, mark.column + 1};
}

class TreeBuilder : public YAML::EventHandler {
 public:
  Node TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    Put(mark, Node::Kind::kNull);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refusal{At(mark),
                  "expected a value, found an alias; write the value out"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    Put(mark, Node::Kind::kScalar).scalar = value;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&,
                       YAML::anchor_t, YAML::EmitterStyle::value) override {
    Open(mark, Node::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Open(mark, Node::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  // A child is moved into its parent when it closes, so no pointer outlives a
  // growing list.
  Node& Put(const YAML::Mark& mark, Node::Kind kind) {
    if (++count_ > kMostNodes)
      throw Refusal{At(mark), "expected at most 100000 values, found more"};
    Node node;
    node.kind = kind;
    node.where = At(mark);
    if (open_.empty()) {
      root_ = std::move(node);
      return root_;
    }
    open_.back().children.push_back(std::move(node));
    return open_.back().children.back();
  }

  void Open(const YAML::Mark& mark, Node::Kind kind) {
    if (++count_ > kMostNodes || open_.size() >= kDeepest)
      throw Refusal{At(mark), "expected values nested at most 32 deep, found " +
                                  std::string("another")};
    open_.emplace_back();
    open_.back().kind = kind;
    open_.back().where = At(mark);
  }

  void Close() {
    Node node = std::move(open_.back());
    open_.pop_back();
    if (open_.empty()) {
      root_ = std::move(node);
    } else {
      open_.back().children.push_back(std::move(node));
    }
  }

  Node root_;
  std::vector<Node> open_;
  size_t count_ = 0;
};

absl::Status Refuse(const std::string& origin, Location where,
                    const std::string& message) {
  Plan place;
  place.origin = origin;
  return absl::InvalidArgumentError(Where(place, where) + ": " + message);
}

}  // namespace

absl::StatusOr<Node> ParseYaml(const std::string& text,
                               const std::string& origin) {
  if (text.size() > kMostBytes)
    return Refuse(origin, {1, 1}, "expected at most 4 MB of YAML, found more");
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    TreeBuilder builder, another;
    parser.HandleNextDocument(builder);
    if (parser.HandleNextDocument(another))
      return Refuse(origin, another.TakeRoot().where,
                    "expected one document, found a second");
    return builder.TakeRoot();
  } catch (const Refusal& refusal) {
    return Refuse(origin, refusal.where, refusal.message);
  } catch (const YAML::Exception& error) {
    return Refuse(origin, At(error.mark),
                  "expected YAML, found an error: " + error.msg);
  } catch (const std::exception& error) {
    return Refuse(
        origin, {1, 1},
        std::string("expected YAML, found an error: ") + error.what());
  }
}

std::string Describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return Quote(node.scalar);
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
  }
  return "";
}

}  // namespace partita::plan
