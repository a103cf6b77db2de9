// permit workflow trace: a tree that is drawn anew on a terminal, and a line for each change
// elsewhere.
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/run_tree.h"
#include "apps/cli/workflow_commands.h"
#include "orchestrator/protocol/time_text.h"

namespace permit::cli {

namespace {

using namespace std::chrono_literals;

constexpr auto pause = 250ms;

// --- On a terminal ---

std::string line_of(const Output& out, const TreeNode& node, Time now) {
  const Time end = is_set(node.ended) ? node.ended : now;
  std::string line =
      out.paint(printable(node.name, 60), Style::bold) + "  " + out.paint(node.state, node.style);
  if (is_set(node.began)) line += "  " + show_duration(std::max(end - node.began, Duration(0)));
  if (!node.detail.empty()) line += "  " + out.paint(node.detail, Style::dim);
  return line;
}

void draw(const Output& out, const TreeNode& node, Time now, const std::string& indent,
          std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const bool last = i + 1 == node.children.size();
    lines.push_back(indent + (last ? "└ " : "├ ") + line_of(out, node.children[i], now));
    draw(out, node.children[i], now, indent + (last ? "  " : "│ "), lines);
  }
}

std::vector<std::string> drawn(const Output& out, const TreeNode& tree, Time now) {
  std::vector<std::string> lines = {line_of(out, tree, now)};
  draw(out, tree, now, "", lines);
  return lines;
}

std::size_t terminal_height() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 3) return 24;
  return size.ws_row;
}

// Takes the last picture's place. While the run goes on only as much is drawn as the terminal
// holds, the latest lines; lines are not wrapped, so that their number is known.
class Picture {
 public:
  void show(std::vector<std::string> lines, bool is_last) {
    const std::size_t most = terminal_height() - 1;
    if (!is_last && lines.size() > most) {
      lines.erase(lines.begin() + 1, lines.end() - static_cast<std::ptrdiff_t>(most - 1));
    }
    std::string text = "\x1b[?7l";
    if (height_ > 0) text += "\x1b[" + std::to_string(height_) + "A";
    for (const std::string& line : lines) text += "\r\x1b[K" + line + "\n";
    std::cout << text << "\x1b[J\x1b[?7h" << std::flush;
    height_ = lines.size();
  }
  void keep() { height_ = 0; }

 private:
  std::size_t height_ = 0;
};

// --- Elsewhere ---

std::string json_of(const TreeNode& node) {
  nlohmann::ordered_json json;
  json["kind"] = node.kind;
  json["name"] = node.name;
  json["state"] = node.state;
  if (is_set(node.began)) json["startTime"] = format_time(node.began);
  if (is_set(node.ended)) json["closeTime"] = format_time(node.ended);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string document_of(const TreeNode& node) {
  std::string text = json_of(node);
  if (node.children.empty()) return text;
  std::string children;
  for (const TreeNode& child : node.children) {
    children += (children.empty() ? "" : ",") + document_of(child);
  }
  text.pop_back();
  return text + ",\"children\":[" + children + "]}";
}

class Changes {
 public:
  Changes(const Output& out, Time now) : out_(out), now_(now) {}

  void say(const TreeNode& node, Time now) {
    now_ = now;
    say(node, "", "");
  }

 private:
  void say(const TreeNode& node, const std::string& above, const std::string& path) {
    const std::string key = above + "/" + node.key;
    const std::string name = path.empty() ? node.name : path + " / " + node.name;
    std::string& known = states_[key];
    if (known != node.state) {
      known = node.state;
      if (out_.format() == Format::jsonl) {
        nlohmann::ordered_json line = nlohmann::ordered_json::parse(json_of(node));
        line["path"] = name;
        out_.json(line.dump());
      }
      out_.text(out_.clock(now_) + "  " + printable(name) + "  " +
                out_.paint(node.state, node.style));
    }
    for (const TreeNode& child : node.children) say(child, key, name);
  }

  const Output& out_;
  Time now_;
  std::map<std::string, std::string> states_;
};

}  // namespace

int run_workflow_trace(Session& session) {
  const Output& out = session.out();
  WorkflowExecution execution = workflow_named(session);
  if (execution.run_id.empty()) {
    execution.run_id = describe_run(session, execution).workflow_execution_info.execution.run_id;
  }
  const int depth = static_cast<int>(session.arguments().number("depth").value_or(5));
  const bool redraws = out.is_text() && isatty(STDOUT_FILENO) == 1;
  Picture picture;
  Changes changes(out, session.now());
  auto tree = std::make_unique<RunTree>(session, execution, depth);
  for (;;) {
    const TreeNode& root = tree->refresh();
    const bool closed = is_set(root.ended);
    if (redraws) {
      picture.show(drawn(out, root, session.now()), closed);
    } else if (out.format() != Format::json) {
      changes.say(root, session.now());
    }
    if (closed && tree->continued_as()) {
      tree = std::make_unique<RunTree>(session, *tree->continued_as(), depth);
      picture.keep();
      continue;
    }
    if (closed) {
      if (out.format() == Format::json) out.json(document_of(root));
      return exit_ok;
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace permit::cli
