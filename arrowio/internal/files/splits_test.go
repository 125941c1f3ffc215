package files_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/core/status"
)

// TestSplits opens directories in the layouts of Hugging Face's libraries. Each file holds
// one number.
func TestSplits(t *testing.T) {
	saved := func(split string) []byte {
		return fmt.Appendf(nil, `{"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": %s}`, split)
	}
	folder(t, map[string][]byte{
		"saved/dataset_dict.json": []byte(`{"splits": ["train", "test"]}`),
		"saved/train/state.json":  saved(`"train"`), "saved/train/data-00000-of-00001.arrow": numbered(1),
		"saved/test/state.json": saved(`"test"`), "saved/test/data-00000-of-00001.arrow": numbered(2),
		"none/dataset_dict.json": []byte(`{"splits": []}`),
		"old/state.json":         []byte(`{"_data_files": [{"filename": "d.arrow", "skip": 0, "take": 1}], "_indices_data_files": []}`), "old/d.arrow": numbered(4),
		"nulls/state.json": []byte(`{"_data_files": [{"filename": "d.arrow", "skip": null, "take": null}], "_indices_data_files": null}`), "nulls/d.arrow": numbered(5),
		"plain/state.json": saved("null"), "plain/data-00000-of-00001.arrow": numbered(3),

		"cache/dataset_info.json":  []byte(`{"splits": {"train": {"num_examples": 2}, "my-split": {}, "gone": {}}}`),
		"cache/my-data-test.arrow": numbered(9), "cache/cache-0123.arrow": numbered(9), "cache/my-data-my-split.arrow": numbered(10),
		"cache/my-data-train-00001-of-00002.arrow": numbered(12), "cache/my-data-train-00000-of-00002.arrow": numbered(11),
		"single/dataset_info.json": []byte(`{"splits": {"train": {}}}`), "single/d-train.arrow": numbered(13), "single/cache-1.arrow": numbered(9),

		"hub/blobs/0": nil, "hub/refs/main": []byte("abc\n"), "hub/snapshots/abc/README.md": nil, "hub/snapshots/old/x.parquet": nil,
		"hub/snapshots/abc/data/train-00000-of-00002.arrow": numbered(20), "hub/snapshots/abc/data/train-00001-of-00002.arrow": numbered(21),
		"hub/snapshots/abc/data/test-00000-of-00002.arrow": numbered(22),
		"other/blobs/0": nil, "other/snapshots/1/test.arrow": numbered(23), "other/snapshots/1/train/0000.arrow": numbered(24),
		"moved/blobs/0": nil, "moved/refs/main": []byte("gone"), "moved/snapshots/1/x.arrow": nil, "moved/snapshots/2/x.arrow": nil,
		"free/a.arrow": numbered(30), "free/b-test.arrow": numbered(31),
		"short/rows-00001-of-00003.arrow": numbered(40), "short/rows-00002-of-00003.arrow": numbered(41),
		"hash/train-00000-of-00002-0123456789abcdef.arrow": numbered(48), "hash/train-00001-of-00002-fedcba9876543210.arrow": numbered(49),
		"cut/train-00000-of-00002-0123456789abcdef.arrow": numbered(48),
		"again/train-00000-of-00001.arrow":                numbered(50), "again/train-00000-of-00002.arrow": numbered(50), "again/train-00001-of-00002.arrow": numbered(50),
		"copy/train-00000-of-00002.arrow": numbered(51), "copy/train-00000-of-00002.ipc": numbered(51),
		"also/train-00000-of-00001.arrow": numbered(52), "also/train.arrow": numbered(52),
		"mixed/train-00000-of-00001.arrow": numbered(42), "mixed/test.arrow": numbered(43),
		"two/train.arrow": numbered(44), "two/test.arrow": numbered(45),
		"one/train.arrow": numbered(46), "one/more.arrow": numbered(47),

		"dict/dataset_dict.json": []byte(`{"splits": ["train"]}`),
		"dict/train/state.json":  saved(`"train"`), "dict/train/data-00000-of-00001.arrow": numbered(50),
		"hashes/train_sft-00000-of-00002-0f1e.arrow": numbered(51), "hashes/train_sft-00001-of-00002-2d3c.arrow": numbered(52),
		"hashes/test_sft-00000-of-00001.zstd.arrow": numbered(53),
		"words/my_train_0.arrow":                    numbered(54), "words/my_train_1.arrow": numbered(55), "words/2024-TEST-a.arrow": numbered(56),
		"other words/trainer.arrow": numbered(57), "other words/latest.arrow": numbered(58), "other words/train_test.arrow": numbered(59),
		"numbers/train-0.arrow": numbered(60), "numbers/train-1.arrow": numbered(61), "numbers/more.arrow": numbered(62),
		"dirs/train/a.arrow": numbered(70), "dirs/Test/k=1/a.arrow": numbered(71), "dirs/dev/README.md": nil,
		"dir/train/a.arrow": numbered(72), "dir/notes/README.md": nil,
		"sets/en/train/a.arrow": numbered(73), "sets/fr/train/a.arrow": numbered(74),
		"deep/config/0.0.0/hash/train.arrow": numbered(75), "deep/config/.old/train.arrow": nil,
	})
	for _, c := range []struct {
		pattern, split string
		records        []byte
		code           status.Code
		want           string
	}{
		{"saved", "train", []byte{1}, 0, ""},
		{"saved", "test", []byte{2}, 0, ""},
		{"saved", "", nil, status.InvalidArgument, `saved: the directory has the splits train, test; choose one with split="train", or open saved/train`},
		{"saved", "valid", nil, status.NotFound, `saved: the directory has no split "valid"; it has train, test`},
		{"saved/train", "train", []byte{1}, 0, ""},
		{"saved/train", "", []byte{1}, 0, ""},
		{"saved/train", "test", nil, status.NotFound, `saved/train: the directory has no split "test"; it has train`},
		{"none", "train", nil, status.InvalidArgument, "none: this is a dictionary of datasets without splits; save one that has some"},
		{"plain", "train", nil, status.NotFound, `plain: the directory has no split "train"; it holds one dataset that was saved without a name: leave the split out`},

		{"old", "", []byte{4}, 0, ""},
		{"nulls", "", []byte{5}, 0, ""},

		{"cache", "train", []byte{11, 12}, 0, ""},
		{"cache", "my-split", []byte{10}, 0, ""},
		{"cache", "test", nil, status.NotFound, `cache: the directory has no split "test"; it has train, my-split`},
		{"cache", "", nil, status.InvalidArgument, `cache: the directory has the splits train, my-split; choose one with split="train"`},
		{"single", "", []byte{13}, 0, ""},

		{"hub", "train", []byte{20, 21}, 0, ""},
		{"hub/snapshots/abc", "train", []byte{20, 21}, 0, ""},
		{"hub/snapshots/abc/data", "train", []byte{20, 21}, 0, ""},
		{"hub", "test", nil, status.NotFound, `hub/snapshots/abc/data: the names of files say that there are 2 files test-*-of-00002, but the directory has 1; copy or download the missing ones, or open those that exist by a glob: hub/snapshots/abc/data/test-*`},
		{"hub", "", nil, status.InvalidArgument, `hub/snapshots/abc/data: the directory has the splits test, train; choose one with split="train", or open hub/snapshots/abc/data/* for all`},
		{"hub/snapshots/abc/data/*", "", []byte{22, 20, 21}, 0, ""},
		{"other", "test", []byte{23}, 0, ""},
		{"other", "train", []byte{24}, 0, ""},
		{"moved", "train", nil, status.InvalidArgument, `moved: the download has 2 revisions, and none of them is "main"; open one of those in moved/snapshots`},

		{"free", "", []byte{30, 31}, 0, ""},
		{"short", "", nil, status.NotFound, "short: the names of files say that there are 3 files rows-*-of-00003, but the directory has 2; copy or download the missing ones, or open those that exist by a glob: short/rows-*"},
		{"hash", "train", []byte{48, 49}, 0, ""},
		{"hash", "", []byte{48, 49}, 0, ""},
		{"cut", "", nil, status.NotFound, "cut: the names of files say that there are 2 files train-*-of-00002, but the directory has 1; copy or download the missing ones, or open those that exist by a glob: cut/train-*"},
		{"again", "", nil, status.InvalidArgument, "again: train-00000-of-00001.arrow and train-00000-of-00002.arrow belong to two sets of files, by their names; open one of them by a glob, or move it to another directory"},
		{"again", "train", nil, status.InvalidArgument, "again: train-00000-of-00001.arrow and train-00000-of-00002.arrow belong to two sets of files, by their names; open one of them by a glob, or move it to another directory"},
		{"copy", "", nil, status.InvalidArgument, "copy: train-00000-of-00002.arrow and train-00000-of-00002.ipc belong to two sets of files, by their names; open one of them by a glob, or move it to another directory"},
		{"also", "train", nil, status.InvalidArgument, "also: train.arrow and train-00000-of-00001.arrow belong to two sets of files, by their names; open one of them by a glob, or move it to another directory"},
		{"short/rows-*", "", []byte{40, 41}, 0, ""},
		{"mixed", "", nil, status.InvalidArgument, `mixed: the directory has the splits test, train; choose one with split="train", or open mixed/* for all`},
		{"mixed", "train", []byte{42}, 0, ""},
		{"two", "", nil, status.InvalidArgument, `two: the directory has the splits test, train; choose one with split="train", or open two/* for all`},
		{"one", "", []byte{47, 46}, 0, ""},
		{"free", "test", []byte{31}, 0, ""},

		{"dict", "", []byte{50}, 0, ""},
		{"dict", "test", nil, status.NotFound, `dict: the directory has no split "test"; it has train`},
		{"dict", "train[:5]", nil, status.NotFound, `dict: the directory has no split "train[:5]"; a split is one name, such as "train": records of it are ds.slice(start, stop), and mf.concat joins splits`},
		{"hashes", "train_sft", []byte{51, 52}, 0, ""},
		{"hashes", "test_sft", []byte{53}, 0, ""},
		{"hashes", "", nil, status.InvalidArgument, `hashes: the directory has the splits test_sft, train_sft; choose one with split="test_sft", or open hashes/* for all`},
		{"words", "train", []byte{54, 55}, 0, ""},
		{"words", "test", []byte{56}, 0, ""},
		{"words", "", nil, status.InvalidArgument, `words: the directory has the splits test, train; choose one with split="train", or open words/* for all`},
		{"other words", "", []byte{58, 59, 57}, 0, ""},
		{"numbers", "train", []byte{60, 61}, 0, ""},
		{"numbers", "", []byte{62, 60, 61}, 0, ""},
		{"dirs", "", nil, status.InvalidArgument, `dirs: the directory has the splits Test, train; choose one with split="train"`},
		{"dirs", "train", []byte{70}, 0, ""},
		{"dir", "", nil, status.InvalidArgument, `dir: the directory has the split train; choose one with split="train"`},
		{"sets", "train", nil, status.NotFound, `sets: the directory has no split "train"; 2 directories in it have files, such as sets/en/train: open one of them`},
		{"deep", "train", nil, status.NotFound, `deep: the directory has no split "train"; it has files in deep/config/0.0.0/hash: open that directory`},
		{"deep", "", nil, status.NotFound, `deep: the directory has no file of Arrow or Parquet (` + files.Suffixes + `); it has files in deep/config/0.0.0/hash: open that directory`},
		{"org/name", "train", nil, status.NotFound, `org/name: there is no such file or directory; if it is a dataset on the hub, download it: huggingface_hub.snapshot_download("org/name", repo_type="dataset") returns its directory`},
		{"free", "x", nil, status.NotFound, `free: the directory has no split "x"; it has a, test`},
		{"free", "../saved/train", nil, status.NotFound, `free: the directory has no split "../saved/train"; it has a, test`},
		{"free/a.arrow", "a", nil, status.InvalidArgument, `free/a.arrow: a split is chosen in a directory, and this is not a directory; leave the split "a" out, or open the directory`},
		{"free/*", "a", nil, status.InvalidArgument, `free/*: a split is chosen in a directory, and this is not a directory; leave the split "a" out, or open the directory`},
	} {
		got, err := find(t, c.split, c.pattern)
		if c.want != "" {
			if status.CodeOf(err) != c.code || err.Error() != "arrowio: "+c.want {
				t.Errorf("%s, split %q:\n got %v\nwant arrowio: %s", c.pattern, c.split, err, c.want)
			}
			continue
		}
		if !bytes.Equal(got, c.records) || err != nil {
			t.Errorf("%s, split %q: %v, %v instead of %v", c.pattern, c.split, got, err, c.records)
		}
	}
	if err := os.Chmod("saved/dataset_dict.json", 0); err == nil && os.Getuid() != 0 {
		if _, err := find(t, "", "saved"); err == nil || !strings.Contains(err.Error(), "dataset_dict.json") {
			t.Errorf("without permission: %v", err)
		}
	}
}
