// The live page in a browser that draws it: headless Chromium, over the WebDriver protocol, spoken by ramie's own
// client. Skips itself without chromium and chromedriver; with RAMIE_REQUIRE_BROWSER=1 it fails.
#include "../testing.hpp"

#include <ramie/actor.hpp>
#include <ramie/channel.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

namespace ramie::http {
namespace {

using namespace std::chrono_literals;

bool is_on_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "" : path;
  for (std::size_t from = 0; from < folders.size();) {
    const std::size_t end = std::min(folders.find(':', from), folders.size());
    if (::access((folders.substr(from, end - from) + "/" + program).c_str(), X_OK) == 0) return true;
    from = end + 1;
  }
  return false;
}

std::string in_json(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

/// A window of `width` pixels.
class browser {
 public:
  explicit browser(int width) {
    net::tcp_listener unused = on_any_port();
    at_ = "http://" + unused.local().to_string();
    const std::string port = std::to_string(unused.local().port());
    unused.close();
    driver_ = net::child{{"chromedriver", "--port=" + port, "--log-level=OFF"},
                         {.out = net::child_io::null, .err = net::child_io::null}};
    for (bool up = false; !up;) {
      try {
        up = client_.get(at_ + "/status").status() == 200;
      } catch (const net::io_error&) {
        this_fiber::sleep_for(20ms);  // it has not begun to listen
      } catch (const timeout_error&) {
        // It is slow to begin.
      }
    }
    const std::string made = post(
        "/session",
        R"({"capabilities":{"alwaysMatch":{"goog:chromeOptions":{"args":["--headless=new","--no-sandbox","--disable-gpu",)"
        R"("--window-size=)" +
            std::to_string(width) + R"(,1000"]},"goog:loggingPrefs":{"browser":"ALL"}}}})");
    const std::size_t from = made.find("\"sessionId\":\"") + 13;
    session_ = "/session/" + made.substr(from, made.find('"', from) - from);
    post(session_ + "/goog/cdp/execute", R"({"cmd":"Emulation.setDeviceMetricsOverride","params":{"width":)" +
                                             std::to_string(width) +
                                             R"(,"height":1000,"deviceScaleFactor":1,"mobile":false}})");
  }
  browser(const browser&) = delete;
  browser& operator=(const browser&) = delete;
  ~browser() {
    try {
      static_cast<void>(client_.request(at_ + session_, {.method = "DELETE"}).body());
    } catch (const std::exception& e) {
      ADD_FAILURE() << "the browser does not end: " << e.what();
    }
    driver_.kill(SIGTERM);
    (void)driver_.wait();
  }

  void open(const std::string& url) { post(session_ + "/url", R"({"url":)" + in_json(url) + "}"); }
  /// What the function's body returns, as JSON.
  std::string run(const std::string& script) {
    const std::string answer = post(session_ + "/execute/sync", R"({"script":)" + in_json(script) + R"(,"args":[]})");
    constexpr std::string_view before = "{\"value\":";
    return answer.starts_with(before) ? answer.substr(before.size(), answer.size() - before.size() - 1) : answer;
  }
  void run_until(const std::string& script, const std::string& wanted) {
    while (run(script) != wanted) this_fiber::sleep_for(50ms);
  }
  /// What the page has complained of.
  std::string log() { return post(session_ + "/se/log", R"({"type":"browser"})"); }

 private:
  std::string post(const std::string& path, const std::string& body) {
    return client_
        .request(at_ + path, {.method = "POST", .headers = {{"content-type", "application/json"}}, .body = body})
        .body();
  }

  client client_{{.response_time = std::chrono::minutes{5}}};
  std::string at_, session_;
  net::child driver_;
};

#define SKIP_WITHOUT_A_BROWSER()                                                            \
  do {                                                                                      \
    if (is_on_path("chromedriver") && is_on_path("chromium")) break;                        \
    const char* const required = std::getenv("RAMIE_REQUIRE_BROWSER");                      \
    ASSERT_FALSE(required != nullptr && std::string_view{required} == "1") << "no browser"; \
    GTEST_SKIP() << "needs chromium and chromium-driver";                                   \
  } while (false)

class boss : public actor<boss> {
 public:
  void on(int) {}
};

/// Puts something into each part of the page, and calls f.
template <class F>
void with_something_to_see(runtime& shop, F f) {
  shop.run([&] {
    channel<int> numbers;
    event open;
    net::tcp_listener listener = on_any_port();
    scope all;
    for (int i = 0; i < 12; ++i)
      all.spawn(fiber_options{.name = "buyer " + std::to_string(i)}, [&] { (void)numbers.recv(); });
    all.spawn(fiber_options{.name = "<b>\"sly\" & co</b>"}, [&] { open.wait(); });
    all.spawn(fiber_options{.name = "sleeper"}, [&] { (void)open.wait_for(1h); });
    all.spawn(fiber_options{.name = "porter"}, [&] {
      try {
        (void)listener.accept();
      } catch (const net::io_error&) {
        // It was closed.
      }
    });
    supervisor top{{.name = "top"}};
    const auto under = top.spawn_actor<boss>(child_options{.actor = {.name = "under"}});
    f();
    listener.close();
    open.set();
    numbers.close();
    all.join();
  });
}

const std::string text_of_part = "return document.getElementById('PART').innerText.includes('TEXT')";
std::string says(std::string part, const std::string& text) {
  std::string script = text_of_part;
  script.replace(script.find("PART"), 4, part);
  script.replace(script.find("TEXT"), 4, text);
  return script;
}

struct cellar final : status_source {
  [[nodiscard]] std::vector<status_table> tables() const override {
    return {{"cellar_plums", "Plums.", {"jar"}, {"eaten_total"}, {{{"<b>first</b>"}, {41}}}}};
  }
  void dump(status_text&) const noexcept override {}
};

TEST(inspector_page, shows_all_parts_and_complains_of_nothing) {
  SKIP_WITHOUT_A_BROWSER();
  runtime shop{{.workers = 2, .name = "shop"}};
  inspector page{shop};
  const cellar plums;
  const status_registration shown{plums};
  with_something_to_see(shop, [&] {
    browser b{1280};
    b.open(page.url());
    for (const auto& [part, text] : {std::pair{"state", "live"},
                                     {"places", "channel receive"},
                                     {"places", "inspector_browser.test.cpp"},
                                     {"channels", "12"},
                                     {"fibers", "buyer 11"},
                                     {"fibers", "<b>\\\"sly\\\" & co</b>"},
                                     {"actors", "under"},
                                     {"tree", "top"},
                                     {"timers", "1"},
                                     {"io", "porter"},
                                     {"tables", "cellar plums"},
                                     {"tables", "41"},
                                     {"tables", "<b>first</b>"},
                                     {"charts", "dispatches/s"}})
      b.run_until(says(part, text), "true");
    // Rates need two looks.
    b.run_until("return document.querySelectorAll('#charts polyline').length", "8");
    b.run_until(says("workers", "%"), "true");
    EXPECT_EQ(b.run("return document.querySelectorAll('b b, td b').length"), "0") << "a name was taken for markup";
    EXPECT_EQ(b.log(), "{\"value\":[]}");
  });
}

TEST(inspector_page, follows_filters_pauses_dumps_and_traces) {
  SKIP_WITHOUT_A_BROWSER();
  runtime shop{{.workers = 2, .name = "shop"}};
  inspector page{shop, {.token = "a-token-of-the-test"}};
  with_something_to_see(shop, [&] {
    browser b{1280};
    b.open(page.url());
    b.run_until(says("fibers", "porter"), "true");
    b.run("[...document.querySelectorAll('#fibers tr')].find(r => r.innerText.includes('porter')).click()");
    b.run_until(says("followed", "waits for accept"), "true");
    b.run_until("return document.querySelectorAll('#f-calls li').length > 2", "true");
    b.run("document.getElementById('unfollow').click()");
    b.run_until("return document.getElementById('followed').hidden", "true");
    b.run("const f = document.getElementById('find'); f.value = 'buyer 1'; f.dispatchEvent(new Event('input'))");
    b.run_until("return document.querySelectorAll('#fibers tbody tr').length", "3");  // 1, 10, 11
    b.run("document.getElementById('dump').click()");
    b.run_until(
        "return document.querySelector('dialog').open && document.querySelector('pre').innerText.includes('runtime "
        "\\\"shop\\\"')",
        "true");
    b.run(
        "document.getElementById('close').click(); window.saved = ''; save = (name, text) => window.saved = name + "
        "text.slice(0, 30);"
        "document.getElementById('trace').click()");
    b.run_until("return window.saved.includes('displayTimeUnit')", "true");
    b.run("document.getElementById('pause').click()");
    b.run_until(says("state", "paused"), "true");
    EXPECT_EQ(b.log(), "{\"value\":[]}");
  });
}

TEST(inspector_page, says_that_the_token_is_wrong) {
  SKIP_WITHOUT_A_BROWSER();
  runtime shop{{.workers = 1, .name = "shop"}};
  inspector page{shop, {.token = "a-token-of-the-test"}};
  shop.run([&] {
    browser b{800};
    b.open("http://" + page.at().to_string() + "/#another-token-that-is-wrong");
    b.run_until(says("state", "the token is missing or wrong"), "true");
  });
}

TEST(inspector_page, fits_a_narrow_window) {
  SKIP_WITHOUT_A_BROWSER();
  runtime shop{{.workers = 2, .name = "shop"}};
  inspector page{shop};
  with_something_to_see(shop, [&] {
    browser b{360};
    b.open(page.url());
    b.run_until(says("fibers", "porter"), "true");
    EXPECT_EQ(b.run("return document.documentElement.scrollWidth <= innerWidth"), "true");
  });
}

}  // namespace
}  // namespace ramie::http
