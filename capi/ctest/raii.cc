// raii.cc: meshfeed.hpp in C++17, and the initializers of the headers in C++.
#include "check.h"
#include "meshfeed.hpp"
#include "meshfeed_devices.h"

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

using meshfeed::Batch;
using meshfeed::Dataset;
using meshfeed::Error;
using meshfeed::Layout;
using meshfeed::Loader;

// Every option struct has an initializer that sets its size.
constexpr mf_dataset_options dataset_options = MF_DATASET_OPTIONS_INIT;
constexpr mf_loader_options loader_options = MF_LOADER_OPTIONS_INIT;
constexpr mf_devices_options devices_options = MF_DEVICES_OPTIONS_INIT;
constexpr mf_picture picture = MF_PICTURE_INIT;
static_assert(dataset_options.struct_size == sizeof dataset_options);
static_assert(loader_options.struct_size == sizeof loader_options);
static_assert(devices_options.struct_size == sizeof devices_options);
static_assert(picture.struct_size == sizeof picture);

// A handle has one owner.
static_assert(!std::is_copy_constructible_v<Dataset> && std::is_nothrow_move_constructible_v<Dataset>);

namespace {

// Expects that a function throws, and returns the exception.
template <class Exception, class Function> Exception thrown(Function function) {
  try {
    function();
  } catch (const Exception& e) {
    return e;
  }
  CHECK(!"no exception");
  std::abort();
}

Loader loader_over(const Dataset& dataset, const char* state = nullptr) {
  mf_loader_options options = MF_LOADER_OPTIONS_INIT;
  options.epochs = 1;
  options.state = state;
  return Loader(dataset, Layout(DOCUMENT(100, 4, "")), options);
}

void check_order(const Batch& batch, const records* data) {
  const int64_t order[] = {batch->position, batch->position + 1, batch->position + 2, batch->position + 3};
  check_batch(batch.get(), data, order);
}

void check_loop(const Dataset& dataset, const records* data) {
  Loader loader = loader_over(dataset);
  std::string saved;
  int batches = 0;
  for (const Batch& batch : loader) {
    check_order(batch, data);
    if (++batches == 10)
      saved = batch.state();
  }
  CHECK(batches == 25 && !loader.next());

  Loader resumed = loader_over(dataset, saved.c_str());
  const std::optional<Batch> first = resumed.next();
  CHECK(first && (*first)->step == 10 && resumed.state() == first->state());
}

// A batch outlives its loader, and memory is reused after the last copy is gone.
void check_copies(const Dataset& dataset, const records* data) {
  std::optional<Batch> kept;
  {
    Loader loader = loader_over(dataset);
    Batch first = *loader.next();
    Batch copy = first;
    first = *loader.next();
    kept = std::move(copy);
    CHECK(mf_live_batches() == 2 && first->step == 1);
  }
  CHECK(mf_live_batches() == 1 && (*kept)->step == 0);
  check_order(*kept, data);
}

void check_tensors(const Dataset& dataset) {
  Loader loader = loader_over(dataset);
  const Batch batch = *loader.next();
  const std::vector<meshfeed::Tensor> blocks = batch.tensors();
  CHECK(blocks.size() == 12);
  const meshfeed::Tensor& label = blocks.back();
  CHECK(std::string_view(label.name) == "label" && *label.values<std::int32_t>() == 3 * 7 + 1);
  const auto wrong = thrown<std::invalid_argument>([&] { label.values<float>(); });
  CHECK(std::string_view(wrong.what()) ==
        "meshfeed: array label has elements of DLPack type (0, 32 bits), but "
        "(2, 32 bits) were asked for");
}

void check_errors(const Dataset& dataset) {
  const Error parse = thrown<Error>([] { Layout("{\"meshfeed\":2}"); });
  CHECK(parse.code() == MF_INVALID_ARGUMENT && std::string_view(parse.details().op) == "layout");
  const std::string message = std::string("layout: ") + parse.details().message;
  CHECK(parse.what() == (parse.details().hint[0] ? message + "; " + parse.details().hint : message));
  CHECK(thrown<Error>([] { Dataset({"absent.arrow"}); }).code() == MF_NOT_FOUND);
  CHECK(thrown<Error>([&] { loader_over(dataset, "{}"); }).code() == MF_INVALID_ARGUMENT);
  CHECK(thrown<Error>([&] { dataset.view(mf_dataset_slice, 0, 101); }).code() == MF_OUT_OF_RANGE);
}

} // namespace

int main() {
  std::unique_ptr<records, decltype(&free)> data(make_records(), free);
  {
    const Dataset dataset(open_records(data.get()));
    CHECK(meshfeed::text(mf_dataset_info, dataset.get()).find("\"records\":100,") != std::string::npos);
    const Dataset part = dataset.view(mf_dataset_slice, 90, 100);
    CHECK(meshfeed::text(mf_dataset_info, part.get()).find("\"records\":10,") != std::string::npos);
    const Dataset file({std::getenv("FILE")});
    CHECK(meshfeed::text(mf_dataset_info, file.get()).find("\"image\"") != std::string::npos);
    check_loop(dataset, data.get());
    check_copies(dataset, data.get());
    check_tensors(dataset);
    check_errors(dataset);
  }
  CHECK(mf_live_handles() == 0 && mf_live_batches() == 0 && data->released == 1);
  puts("ok");
}
