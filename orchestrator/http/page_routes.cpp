// The routes of the operator's page.
#include "orchestrator/http/call.h"

namespace permit::http {

void Routes::add_page_routes() {
  const auto file = [this](Call& call, const std::vector<std::string>& segments) {
    auto response = assets_.answer(call.exchange->request(), segments);
    if (!response) throw not_found("ROUTE_NOT_FOUND", "there is nothing at this path");
    call.exchange->reply(std::move(*response));
  };
  const auto index = [file](Call& call) { file(call, {"index.html"}); };
  const auto asset = [file](Call& call) {
    file(call, {call.segments.begin() + 1, call.segments.end()});
  };
  // Browsers ask for it by themselves, and would show an error to whoever looks for real ones.
  const auto icon = [this](Call& call) {
    auto response = assets_.answer(call.exchange->request(), {"favicon.ico"});
    if (!response) response = assets_.answer(call.exchange->request(), {"favicon.svg"});
    if (!response) {
      response.emplace();
      response->status = 204;
    }
    call.exchange->reply(std::move(*response));
  };
  for (const char* method : {"GET", "HEAD"}) {
    add(method, "/",
        Doc(Access::open, "The operator's page").sends("text/html; charset=utf-8").refuses({404}),
        index);
    add(method, "/assets/{path...}",
        Doc(Access::open, "A file of the page; its path may have more than one segment")
            .sends("*/*")
            .sends("", 304, "As you have it")
            .refuses({404}),
        asset);
    add(method, "/favicon.ico",
        Doc(Access::open, "The icon of the page").sends("*/*").sends("", 204, "There is none"),
        icon);
  }
}

}  // namespace permit::http
