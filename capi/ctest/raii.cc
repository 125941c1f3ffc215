// raii.cc: the header in C++17, with a wrapper as a C++ program would write it.
#include "check.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace {

// Turns an error into an exception.
void must(mf_status status, const mf_error& error) {
  if (status < 0)
    throw std::runtime_error(std::string(error.op) + ": " + error.message + "; " + error.hint);
}

// Owns a handle of any kind.
class Handle {
public:
  explicit Handle(uint64_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, 0)) {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() { mf_release(id_, nullptr); }
  uint64_t id() const { return id_; }

private:
  uint64_t id_;
};

struct Release {
  void operator()(mf_batch* batch) const { mf_batch_release(batch); }
};
using Batch = std::unique_ptr<mf_batch, Release>;

Handle layout(std::string_view document) {
  mf_error error = no_error();
  mf_layout id = 0;
  must(mf_layout_create(document.data(), document.size(), &id, &error), error);
  return Handle(id);
}

Batch next(const Handle& loader) {
  mf_error error = no_error();
  mf_batch* batch = nullptr;
  must(mf_loader_next(loader.id(), -1, &batch, &error), error);
  return Batch(batch);
}

} // namespace

int main() {
  std::unique_ptr<records, decltype(&free)> data(make_records(), free);
  {
    const Handle dataset(open_records(data.get()));
    const Handle plan = layout(DOCUMENT(100, 4, ""));
    const Handle loader(make_loader(dataset.id(), plan.id(), "{\"epochs\":1}"));
    int batches = 0;
    while (Batch batch = next(loader)) {
      const int64_t order[] = {batch->position, batch->position + 1, batch->position + 2,
                               batch->position + 3};
      check_batch(batch.get(), data.get(), order);
      CHECK(std::string_view(batch->state).substr(0, 14) == "{\"meshfeed\":1,");
      batches++;
    }
    CHECK(batches == 25);
    try {
      layout("{\"meshfeed\":2}");
      CHECK(false);
    } catch (const std::runtime_error& e) {
      CHECK(std::string_view(e.what()).substr(0, 8) == "layout: ");
    }
  }
  CHECK(mf_live_handles() == 0 && data->released == 1);
  puts("ok");
}
