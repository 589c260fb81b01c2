// SPDX-License-Identifier: GPL-3.0-or-later
// Requests that name an adapter: the answer is that adapter's and says so; what is not there is never answered by another.
#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class AdapterRequestTest : public HttpTest {
 protected:
  VersionId promoted() {
    const VersionId version = store_.new_version();
    testing::write_fake_adapter(store_->adapter_folder(version));
    EXPECT_TRUE(slots_->prepare(version, "").ok());
    EXPECT_TRUE(slots_->publish(store_.promote(version)).ok());
    slots_->set_pinnable({kBaseVersion, version});
    return version;
  }
  std::size_t records() { return store_->records({}, 0, 100).size(); }
};

TEST_F(AdapterRequestTest, LRA9_AnUnknownAdapterIs404AndNeverTheBase) {
  start();
  promoted();
  for (const std::string path : {"/v1/completions", "/v1/chat/completions"}) {
    for (const bool streamed : {false, true}) {
      for (const std::string name : {"none", "none@1", "brief@99", "Brief", "brief@", "gpt-4"}) {
        json body = path == "/v1/completions" ? prompt("p") : chat("p");
        body["stream"] = streamed;
        body["model"] = name;
        const Got by_model = post(path, body);
        EXPECT_EQ(by_model.status, 404) << name;
        EXPECT_EQ(by_model.code(), "model_not_found") << name;
        EXPECT_EQ(by_model.param(), "model") << name;
        body.erase("model");
        const int pinned = name == "none@1" || name == "brief@99" ? 404 : 400;  // the others name no version
        EXPECT_EQ(post(path, body, {{"X-Sluice-Pin", name}}).status, pinned) << name;
        body["sluice"] = {{"pin", name}};
        EXPECT_EQ(post(path, body).status, pinned) << name;
      }
    }
  }
  EXPECT_EQ(records(), 0u);
  EXPECT_EQ(engine_->stats().generated_tokens, 0);
}

TEST_F(AdapterRequestTest, LRA9_AnUnknownModelIs404WithAPinToo) {
  start();
  const std::string pin = "brief@" + std::to_string(promoted().value);
  for (const std::string model : {"none", "Brief", "gpt-4", "brief@"}) {
    json body = prompt("p");
    body["model"] = model;
    const Got by_header = post("/v1/completions", body, {{"X-Sluice-Pin", pin}});
    EXPECT_EQ(by_header.status, 404) << model;
    EXPECT_EQ(by_header.code(), "model_not_found") << model;
    EXPECT_EQ(post("/v1/completions", body, {{"X-Sluice-Pin", "base"}}).status, 404) << model;
    body["sluice"] = {{"pin", pin}};
    EXPECT_EQ(post("/v1/completions", body).status, 404) << model;
  }
  EXPECT_EQ(records(), 0u);
}

TEST_F(AdapterRequestTest, LRA13_PinsThatDoNotFitAre400) {
  start();
  const VersionId version = promoted();
  const std::string pin = "brief@" + std::to_string(version.value);
  const struct {
    std::string model, header, body;
  } cases[] = {{"", "brief", ""},     {"", "fake", ""},         {"", "", "brief@x"},  {"", "", "@1"},      {"", "brief@-1", ""},
               {"fake", pin, ""},     {"base", "", pin},        {"brief", "x@2", ""}, {"x@2", pin, ""},    {pin, "base", ""},
               {pin, "", "brief@99"}, {"", pin, "brief@99"},    {"", "base", pin},    {"any", pin, "base"}, {"", std::string(9000, 'x'), ""}};
  for (const auto& c : cases) {
    json body = prompt("p");
    if (!c.model.empty()) body["model"] = c.model;
    if (!c.body.empty()) body["sluice"] = {{"pin", c.body}};
    const Got g = post("/v1/completions", body, c.header.empty() ? HttpHeaders() : HttpHeaders{{"X-Sluice-Pin", c.header}});
    EXPECT_EQ(g.status, 400) << body << c.header << g.body;
    EXPECT_EQ(g.param(), "sluice.pin") << body << c.header;
    EXPECT_LT(g.response.body.size(), 500u);
  }
  EXPECT_EQ(records(), 0u);
}

TEST_F(AdapterRequestTest, LRA13_PinsThatFitAreAnsweredByThatVersion) {
  start();
  const VersionId version = promoted();
  const std::string pin = "brief@" + std::to_string(version.value);
  const struct {
    std::string model, header, body, told;
    VersionId made_by;
  } cases[] = {{"", pin, "", pin, version},       {"", "", pin, pin, version},       {pin, pin, pin, pin, version},
               {"brief", pin, "", "brief", version}, {"any", pin, "", "any", version}, {"", "base", "", "base", kBaseVersion},
               {"fake", "base", "", "fake", kBaseVersion}, {"any", "", "base", "any", kBaseVersion}};
  for (const auto& c : cases) {
    json body = prompt("p");
    if (!c.model.empty()) body["model"] = c.model;
    if (!c.body.empty()) body["sluice"] = {{"pin", c.body}};
    const Got g = post("/v1/completions", body, c.header.empty() ? HttpHeaders() : HttpHeaders{{"X-Sluice-Pin", c.header}});
    ASSERT_EQ(g.status, 200) << g.body;
    EXPECT_EQ(g.body["model"], c.told);
    EXPECT_EQ(g.body["sluice"]["version"], c.made_by.value);
    EXPECT_EQ(testing::fake_version_of(g.body["choices"][0]["text"].get<std::string>()), c.made_by);
  }
}

TEST_F(AdapterRequestTest, LRA13_AnswersNameTheAdapterThatMadeThem) {
  start();
  const VersionId version = promoted();
  const std::string pin = "brief@" + std::to_string(version.value);
  const struct {
    std::string model, told, adapter;
    VersionId made_by;
  } cases[] = {{"brief", "brief", pin, version}, {pin, pin, pin, version}, {"", "brief", pin, version}, {"fake", "fake", "base", kBaseVersion}};
  for (const auto& c : cases) {
    json body = prompt("p");
    if (!c.model.empty()) body["model"] = c.model;
    const Got g = post("/v1/completions", body);
    ASSERT_EQ(g.status, 200) << g.body;
    EXPECT_EQ(g.body["model"], c.told);
    EXPECT_EQ(g.body["sluice"]["adapter"], c.adapter);
    EXPECT_EQ(g.body["sluice"]["version"], c.made_by.value);
    EXPECT_EQ(g.header("X-Sluice-Adapter"), c.adapter);
    EXPECT_EQ(g.body["system_fingerprint"], "sl-01234567-" + c.adapter);
    EXPECT_EQ(testing::fake_version_of(g.body["choices"][0]["text"].get<std::string>()), c.made_by);
    const Streamed s = stream("/v1/completions", body);
    ASSERT_TRUE(s.done());
    for (const json& chunk : s.chunks) EXPECT_EQ(chunk["model"], c.told);
    EXPECT_EQ(s.chunks.back()["sluice"]["adapter"], c.adapter);
    EXPECT_EQ(s.got.header("X-Sluice-Adapter"), c.adapter);
    EXPECT_EQ(testing::fake_version_of(s.text()), c.made_by);
  }
}

}  // namespace
}  // namespace sluice
