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
    EXPECT_TRUE(slots_->prepare(version).ok());
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
        const Got by_header = post(path, body, {{"X-Sluice-Pin", name}});
        EXPECT_EQ(by_header.status, 404) << name;
        body["sluice"] = {{"pin", name}};
        EXPECT_EQ(post(path, body).status, 404) << name;
      }
    }
  }
  EXPECT_EQ(records(), 0u);
  EXPECT_EQ(engine_->stats().generated_tokens, 0);
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
