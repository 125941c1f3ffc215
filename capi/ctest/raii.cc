// raii.cc: the header in C++17, with wrappers that a C++ program may write.
#include "check.h"
#include "meshfeed_devices.h"

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

// Owns a handle of one kind.
template <class Handle> class Owned {
public:
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&&) = delete;
  ~Owned() { mf_release(handle_.id, nullptr); }
  Handle get() const { return handle_; }

private:
  Handle handle_;
};

struct Release {
  void operator()(mf_batch* batch) const { mf_batch_release(batch); }
};
using Batch = std::unique_ptr<mf_batch, Release>;

Owned<mf_layout> layout(std::string_view document) {
  mf_error error = MF_ERROR_INIT;
  mf_layout made{};
  must(mf_layout_create(document.data(), document.size(), &made, &error), error);
  return Owned(made);
}

Batch next(const Owned<mf_loader>& loader) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch = nullptr;
  must(mf_loader_next(loader.get(), -1, &batch, &error), error);
  return Batch(batch);
}

} // namespace

// Every option struct has an initializer that sets its size.
constexpr mf_dataset_options dataset_options = MF_DATASET_OPTIONS_INIT;
constexpr mf_loader_options loader_options = MF_LOADER_OPTIONS_INIT;
constexpr mf_devices_options devices_options = MF_DEVICES_OPTIONS_INIT;
constexpr mf_picture picture = MF_PICTURE_INIT;
static_assert(dataset_options.struct_size == sizeof dataset_options);
static_assert(loader_options.struct_size == sizeof loader_options);
static_assert(devices_options.struct_size == sizeof devices_options);
static_assert(picture.struct_size == sizeof picture);

int main() {
  std::unique_ptr<records, decltype(&free)> data(make_records(), free);
  {
    const Owned dataset(open_records(data.get()));
    const Owned plan = layout(DOCUMENT(100, 4, ""));
    mf_loader_options options = MF_LOADER_OPTIONS_INIT;
    options.epochs = 1;
    const Owned loader(make_loader(dataset.get(), plan.get(), &options));
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
