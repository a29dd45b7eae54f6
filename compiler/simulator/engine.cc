// A discrete-event simulation without an event queue. Each rank's clock
// advances by itself. Messages and meetings carry the times between ranks.
#include "compiler/simulator/engine.h"

#include <algorithm>

namespace partita::simulator {
namespace {

using Kind = Span::Kind;

int64_t BytesOf(const program::Instruction& instruction) {
  return instruction.operands()->Get(0)->bytes();
}

}  // namespace

Engine::Engine(const Steps& steps, const Folding& folding, const Costs& costs,
               const SimulateOptions& options)
    : steps_(steps), folding_(folding), costs_(costs), options_(options) {
  const size_t count = folding.classes().size();
  ranks_.resize(count);
  times_.resize(count);
  main_.resize(count);
  const size_t functions = steps.program().functions()->size();
  calls_.assign(count, std::vector<int64_t>(functions, 0));
  for (const DeviceClass& device_class : folding.classes())
    slowness_.push_back(costs.Slowness(device_class.rank));
}

int Engine::MainOf(int device_class) const {
  const int entry = folding_.classes()[static_cast<size_t>(device_class)].entry;
  return steps_.program().entries()->Get(static_cast<unsigned>(entry))->main();
}

void Engine::Run() {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].steps_left = std::max(1, options_.steps);
    Begin(static_cast<int>(i));
    ready_.push_back(static_cast<int>(i));
  }
  while (!ready_.empty()) {
    const int next = ready_.back();
    ready_.pop_back();
    Advance(next);
  }
}

double Engine::StepSeconds() const {
  double end = 0, before = 0;
  for (const Rank& rank : ranks_) {
    end = std::max(end, rank.end);
    before = std::max(before, rank.end_before);
  }
  return end - before;
}

void Engine::Begin(int device_class) {
  Rank& rank = ranks_[static_cast<size_t>(device_class)];
  rank.begin = rank.clock;
  rank.stack.push_back({MainOf(device_class), 0});
  if (IsLast(rank))
    ++calls_[static_cast<size_t>(device_class)]
            [static_cast<size_t>(MainOf(device_class))];
}

void Engine::End(int device_class) {
  Rank& rank = ranks_[static_cast<size_t>(device_class)];
  rank.end = rank.clock;
  if (--rank.steps_left == 0) return;
  rank.end_before = rank.end;
  Begin(device_class);
}

void Engine::Advance(int device_class) {
  Rank& rank = ranks_[static_cast<size_t>(device_class)];
  while (rank.steps_left > 0) {
    const Frame frame = rank.stack.back();
    const FunctionSteps& function = steps_.Of(frame.function);
    if (frame.step == function.steps.size()) {
      rank.stack.pop_back();
      if (rank.stack.empty()) End(device_class);
      continue;
    }
    const Step& step = function.steps[frame.step];
    if (rank.stack.size() == 1 && !rank.arrived) {
      rank.call = step.function >= 0 ? step.name : -1;
      if (IsLast(rank))
        main_[static_cast<size_t>(device_class)].push_back(
            {step.first, rank.clock});
    }
    if (!Do(device_class, frame, step)) return;
  }
}

bool Engine::Do(int device_class, const Frame& frame, const Step& step) {
  Rank& rank = ranks_[static_cast<size_t>(device_class)];
  const size_t depth = rank.stack.size() - 1;
  switch (step.kind) {
    case Step::Kind::kCompute:
      Compute(device_class, step);
      break;
    case Step::Kind::kCall:
      Compute(device_class, step);
      rank.stack.push_back({step.function, 0});
      break;
    case Step::Kind::kSend:
      DoSend(device_class, frame, step);
      break;
    case Step::Kind::kReceive:
      if (!DoReceive(device_class, frame, step)) return false;
      break;
    case Step::Kind::kStart:
      DoStart(device_class, frame, step);
      break;
    case Step::Kind::kAwait:
      if (!DoAwait(device_class, step)) return false;
      break;
    case Step::Kind::kCollective:
      if (!DoCollective(device_class, frame, step)) return false;
      break;
  }
  ++rank.stack[depth].step;
  return true;
}

void Engine::Compute(int device_class, const Step& step) {
  const size_t at = static_cast<size_t>(device_class);
  Rank& rank = ranks_[at];
  if (step.function >= 0 && IsLast(rank))
    ++calls_[at][static_cast<size_t>(step.function)];
  Pass(device_class, Kind::kCompute, rank.clock + step.seconds * slowness_[at],
       step.name);
}

void Engine::DoSend(int device_class, const Frame& frame, const Step& step) {
  Rank& rank = ranks_[static_cast<size_t>(device_class)];
  const program::Instruction& instruction =
      steps_.InstructionAt(frame.function, step.first);
  const int peer = static_cast<int>(instruction.operation_as_Send()->peer());
  const int64_t partner = folding_.PartnerOf(device_class, peer);
  const int to = folding_.ClassOf(partner);
  const int64_t self =
      folding_.classes()[static_cast<size_t>(device_class)].rank;
  Message message;
  message.start = std::max(rank.clock, rank.link);
  message.end =
      message.start + costs_.Transfer(self, partner, BytesOf(instruction));
  rank.link = message.end;
  Record(device_class, Kind::kTransfer, message.start, message.end, step.name);
  sent_[{device_class, to}].push_back(message);
  ready_.push_back(to);
}

bool Engine::DoReceive(int device_class, const Frame& frame, const Step& step) {
  Rank& rank = ranks_[static_cast<size_t>(device_class)];
  const program::Instruction& instruction =
      steps_.InstructionAt(frame.function, step.first);
  const int peer = static_cast<int>(instruction.operation_as_Receive()->peer());
  const int from = folding_.ClassOf(folding_.PartnerOf(device_class, peer));
  std::deque<Message>& queue = sent_[{from, device_class}];
  rank.arrived = queue.empty();
  if (queue.empty()) return false;
  const Message message = queue.front();
  queue.pop_front();
  Pass(device_class, Kind::kWait, std::max(rank.clock, message.start),
       step.name);
  if (IsLast(rank))
    exposed_[{device_class, frame.function, step.first}] +=
        std::max(0.0, message.end - rank.clock);
  Pass(device_class, Kind::kReceive, std::max(rank.clock, message.end),
       step.name);
  return true;
}

bool Engine::DoCollective(int device_class, const Frame& frame,
                          const Step& step) {
  Rank& rank = ranks_[static_cast<size_t>(device_class)];
  const program::Collective& collective =
      *steps_.InstructionAt(frame.function, step.first)
           .operation_as_Collective();
  const Folding::Group& group = folding_.GroupOf(device_class, step.axes);
  int64_t& number = rank.meetings_done[step.axes];
  const auto found =
      meetings_.try_emplace({step.axes, group.classes.front(), number}).first;
  Meeting& meeting = found->second;
  if (!rank.arrived) {
    ++meeting.arrived;
    meeting.begin = std::max(meeting.begin, rank.clock);
    rank.arrived = true;
    if (meeting.arrived == group.classes.size())
      for (const int other : group.classes)
        if (other != device_class) ready_.push_back(other);
  }
  if (meeting.arrived < group.classes.size()) return false;
  rank.arrived = false;
  ++number;
  const double begin = meeting.begin, seconds = SecondsOf(collective, group);
  if (++meeting.left == group.classes.size()) meetings_.erase(found);
  Pass(device_class, Kind::kWait, begin, step.name);
  if (IsLast(rank))
    exposed_[{device_class, frame.function, step.first}] += seconds;
  Pass(device_class, Kind::kCollective, begin + seconds, step.name);
  return true;
}

void Engine::DoStart(int device_class, const Frame& frame, const Step& step) {
  Rank& rank = ranks_[static_cast<size_t>(device_class)];
  const Folding::Group& group = folding_.GroupOf(device_class, step.axes);
  const auto [number, is_new] = started_numbers_.try_emplace(
      {step.axes, group.classes.front(), rank.started[step.axes]++},
      static_cast<int>(started_.size()));
  if (is_new) {
    StartedMeeting& meeting = started_.emplace_back();
    meeting.expected = group.classes.size();
    meeting.seconds =
        SecondsOf(*steps_.InstructionAt(frame.function, step.first)
                       .operation_as_Collective(),
                  group);
  }
  StartedMeeting& meeting = started_[static_cast<size_t>(number->second)];
  meeting.arrivals.push_back({rank.clock, rank.last_started});
  rank.last_started = number->second;
  rank.under_way[{rank.stack.size(), step.token}] = {
      number->second, frame.function, step.first, step.name};
  // Other ranks may be waiting for this collective or for a later one.
  if (meeting.arrivals.size() < meeting.expected) return;
  for (size_t i = 0; i < ranks_.size(); ++i)
    if (MainOf(static_cast<int>(i)) == MainOf(device_class) &&
        static_cast<int>(i) != device_class)
      ready_.push_back(static_cast<int>(i));
}

bool Engine::Settle(int number) {
  StartedMeeting& meeting = started_[static_cast<size_t>(number)];
  if (meeting.end >= 0) return true;
  if (meeting.arrivals.size() < meeting.expected) return false;
  double begin = 0;
  for (const StartedMeeting::Arrival& arrival : meeting.arrivals) {
    if (arrival.before >= 0 && !Settle(arrival.before)) return false;
    begin = std::max(begin, arrival.time);
    if (arrival.before >= 0)
      begin =
          std::max(begin, started_[static_cast<size_t>(arrival.before)].end);
  }
  meeting.begin = begin;
  meeting.end = begin + meeting.seconds;
  return true;
}

bool Engine::DoAwait(int device_class, const Step& step) {
  Rank& rank = ranks_[static_cast<size_t>(device_class)];
  const auto found = rank.under_way.find({rank.stack.size(), step.token});
  const Started started = found->second;
  rank.arrived = !Settle(started.meeting);
  if (rank.arrived) return false;
  rank.under_way.erase(found);
  const StartedMeeting& meeting =
      started_[static_cast<size_t>(started.meeting)];
  Record(device_class, Kind::kOverlapped, meeting.begin, meeting.end,
         started.name);
  Pass(device_class, Kind::kWait, meeting.begin, started.name);
  // Without overlap, computing during the collective delayed it by as much.
  const double end = costs_.Overlaps() ? meeting.end
                                       : std::max(rank.clock, meeting.begin) +
                                             (meeting.end - meeting.begin);
  if (IsLast(rank))
    exposed_[{device_class, started.function, started.instruction}] +=
        std::max(0.0, end - rank.clock);
  Pass(device_class, Kind::kCollective, end, started.name);
  return true;
}

// Uses the group of the lowest class. Classes that meet have groups of equal
// cost.
double Engine::SecondsOf(const program::Collective& collective,
                         const Folding::Group& group) {
  const int lowest = group.classes.front();
  auto [known, is_new] = known_.try_emplace({&collective, lowest}, 0);
  if (is_new) {
    const int axes = folding_.axes().Find(collective.axes());
    known->second =
        costs_.Collective(collective, folding_.GroupOf(lowest, axes).ranks);
  }
  return known->second;
}

void Engine::Pass(int device_class, Kind kind, double until, int name) {
  Rank& rank = ranks_[static_cast<size_t>(device_class)];
  const double start = rank.clock;
  if (until <= start) return;
  rank.clock = until;
  Record(device_class, kind, start, until, name);
  if (!IsLast(rank)) return;
  DeviceTimes& times = times_[static_cast<size_t>(device_class)];
  if (kind == Kind::kCompute) times.compute += until - start;
  if (kind == Kind::kCollective) times.collectives += until - start;
  if (kind == Kind::kReceive) times.transfers += until - start;
}

void Engine::Record(int device_class, Kind kind, double start, double end,
                    int name) {
  const Rank& rank = ranks_[static_cast<size_t>(device_class)];
  if (!options_.spans || !IsLast(rank) || end <= start) return;
  Span& span = spans_.emplace_back();
  span.kind = kind;
  span.device_class = device_class;
  span.start = start;
  span.end = end;
  span.name = name;
  span.call = rank.call == name ? -1 : rank.call;
}

std::vector<std::vector<Simulation::Beginning>> Engine::TakeMain() {
  double begin = ranks_.empty() ? 0 : ranks_.front().begin;
  for (const Rank& rank : ranks_) begin = std::min(begin, rank.begin);
  for (auto& list : main_)
    for (Simulation::Beginning& beginning : list) beginning.time -= begin;
  return std::move(main_);
}

std::vector<Span> Engine::TakeSpans() {
  double begin = ranks_.empty() ? 0 : ranks_.front().begin;
  for (const Rank& rank : ranks_) begin = std::min(begin, rank.begin);
  for (Span& span : spans_) {
    span.start -= begin;
    span.end -= begin;
  }
  return std::move(spans_);
}

}  // namespace partita::simulator
