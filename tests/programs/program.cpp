#include "tests/programs/program.h"

#include <chrono>
#include <utility>

namespace permit::programs {

namespace {

using namespace std::chrono_literals;

struct Weight {
  Kind kind;
  int weight;
};

Kind pick(Chance& chance, const std::vector<Weight>& weights) {
  int total = 0;
  for (const Weight& one : weights) total += one.weight;
  int left = chance.between(1, total);
  for (const Weight& one : weights) {
    left -= one.weight;
    if (left <= 0) return one.kind;
  }
  return weights.back().kind;
}

Node draw_one(Chance& chance, Kind kind) {
  Node node;
  node.kind = kind;
  node.number = chance.between(0, 999);
  node.variant = chance.between(0, 999);
  node.duration = chance.percent(10) ? 0s : chance.duration(500ms, 20s);
  node.tolerant = chance.percent(70);
  return node;
}

Node draw_leaf(Chance& chance, int program_size) {
  static const std::vector<Weight> weights = {
      {Kind::activity, 26},    {Kind::timer, 18},       {Kind::wait, 14},       {Kind::child, 14},
      {Kind::signal_other, 8}, {Kind::cancel_other, 2}, {Kind::side_effect, 7}, {Kind::look, 7},
      {Kind::patch, 6},        {Kind::memo, 6},
  };
  Kind kind = pick(chance, weights);
  if (kind == Kind::child && program_size < 3) kind = Kind::timer;
  Node node = draw_one(chance, kind);
  node.child.seed = chance.word();
  node.child.size = program_size / 3;
  node.child.rounds = chance.percent(10) ? 1 : 0;
  return node;
}

Node draw(Chance& chance, int size, int program_size) {
  if (size <= 1) return draw_leaf(chance, program_size);
  static const std::vector<Weight> weights = {{Kind::sequence, 45},
                                              {Kind::parallel, 22},
                                              {Kind::race, 10},
                                              {Kind::cancel_part, 15},
                                              {Kind::shielded, 8}};
  Node node = draw_one(chance, pick(chance, weights));
  int parts = chance.between(2, 4);
  if (node.kind == Kind::cancel_part) parts = 2;
  if (node.kind == Kind::shielded) parts = 1;
  for (int i = 0; i < parts; ++i) {
    node.inner.push_back(draw(chance, (size - 1) / parts, program_size));
  }
  return node;
}

}  // namespace

Node draw_program(const Input& input) {
  Chance chance(input.seed);
  Node root = draw_one(chance, Kind::sequence);
  const int parts = chance.between(1, 3);
  for (int i = 0; i < parts; ++i) {
    root.inner.push_back(draw(chance, input.size / parts, input.size));
  }
  return root;
}

}  // namespace permit::programs
