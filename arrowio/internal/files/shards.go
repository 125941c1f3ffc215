package files

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/meshfeed/meshfeed/core/status"
)

// shard is what the name of a file says: train-00001-of-00004.parquet is file 1 of 4 of the
// split "train". The split may follow the name of the dataset: mnist-train.arrow.
type shard struct {
	name   string
	stem   string // without the suffix and the numbers
	split  string // the last part of the stem
	number int
	of     int // number of shards; 0 if the name has no numbers
}

func shardOf(name string) shard {
	suffix := suffixOf(name)
	stem := name[:len(name)-len(suffix)]
	if m := recordsSuffix.FindStringSubmatch(suffix); m != nil {
		stem += m[1]
	}
	s := shard{name: name, stem: stem}
	if m := numbered.FindStringSubmatch(stem); m != nil {
		s.stem = m[1]
		s.number, _ = strconv.Atoi(m[2])
		s.of, _ = strconv.Atoi(m[3])
	}
	s.split = s.stem[strings.LastIndex(s.stem, "-")+1:]
	return s
}

// numbered matches the stem of a shard. What follows the numbers may be a hash of the content,
// as in uploads before 2023.
var numbered = regexp.MustCompile(`^(.+)-([0-9]{5,})-of-([0-9]{5,})(?:[-._].*)?$`)

// usualSplits are words in the names of files without numbers that are taken for splits.
var usualSplits = []string{"train", "training", "test", "testing", "validation", "valid", "val", "dev", "eval", "evaluation"}

// usualSplit returns the usual name of a split that is a word of a file's name, as in
// train-0.parquet and my_train.parquet. It is empty if the name has no such word, or several.
func usualSplit(name string) (split string) {
	shard := shardOf(name)
	if shard.of > 0 {
		return ""
	}
	for _, word := range strings.FieldsFunc(strings.ToLower(shard.stem), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if !slices.Contains(usualSplits, word) {
			continue
		}
		if split != "" && split != word {
			return ""
		}
		split = word
	}
	return split
}

// splitsOf returns the splits that the names of files name, in order. Names without the
// numbers of shards or a usual word count only if all names do.
func splitsOf(files []string, all bool) (names []string) {
	for _, name := range files {
		shard, usual := shardOf(name), usualSplit(name)
		if usual != "" {
			shard.split = usual
		}
		if all || shard.of > 0 || usual != "" {
			names = append(names, shard.split)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ofSplit returns the files with names that end in the name of the split.
func ofSplit(files []string, split string) (names []string) {
	for _, name := range files {
		if stem := shardOf(name).stem; stem == split || strings.HasSuffix(stem, "-"+split) {
			names = append(names, name)
		}
	}
	return names
}

// wholeSplit returns the files of a split in order, if none is missing.
func (f finder) wholeSplit(dir string, files []string) ([]File, error) {
	if err := f.checkShards(dir, files); err != nil {
		return nil, err
	}
	paths := make([]string, len(files))
	for i, name := range files {
		paths[i] = f.join(dir, name)
	}
	return f.sorted(paths, ""), nil
}

// checkShards returns an error if the name of a file says that there are others, and a file
// is missing or comes twice.
func (f finder) checkShards(dir string, files []string) error {
	found := map[string][]shard{}
	for _, name := range files {
		s := shardOf(name)
		found[s.stem] = append(found[s.stem], s)
	}
	for _, stem := range slices.Sorted(maps.Keys(found)) {
		shards := found[stem]
		slices.SortFunc(shards, func(a, b shard) int { return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(a.number, b.number)) })
		for i, s := range shards[1:] {
			if before := shards[i]; s.of > 0 && (s.of != before.of || s.number == before.number) {
				return status.Errorf(status.InvalidArgument, "arrowio", "%s: %s and %s belong to two sets of files, by their names", dir, before.name, s.name).
					WithHint("open one of them by a glob, or move it to another directory").With("path", dir)
			}
		}
		if of := shards[0].of; len(shards) < of {
			return noFile("%s: the names of files say that there are %d files %s-*-of-%05d, but the directory has %d", dir, of, stem, of, len(shards)).
				WithHint("copy or download the missing ones, or open those that exist by a glob: %s", f.join(dir, stem+"-*")).With("path", dir)
		}
	}
	return nil
}
